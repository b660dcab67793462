// ganymede doctor: what was found on this machine, and why a backend is missing.

#include <fmt/format.h>

#include <algorithm>

#include "cli/command.hpp"
#include "cli/terminal.hpp"
#include "common/host_inventory.hpp"
#include "common/json_value.hpp"
#include "kernel/ops/cuda/cuda_backend.hpp"
#include "report/table.hpp"

namespace ganymede::cli {
namespace {

struct Backend {
  std::string name;
  bool available = false;
  std::string reason;
};

std::vector<std::string> missing(const HostInventory& host, std::initializer_list<std::string_view> names) {
  std::vector<std::string> absent;
  for (const HostDependency& item : host.dependencies)
    if (!item.found && std::find(names.begin(), names.end(), item.name) != names.end()) absent.push_back(item.name);
  return absent;
}

std::string cuda_reason(const HostInventory& host) {
  const kernel::Gpus gpus = kernel::count_gpus();
  if (gpus.count > 0) return fmt::format("{} GPU{}", gpus.count, gpus.count == 1 ? "" : "s");
  std::string reason = gpus.why_none;
  if (host.graphics.devices.empty()) return reason;
  const auto absent = missing(host, {"nvcc", "cuDNN", "NCCL"});
  reason += fmt::format("; this machine has {} GPU{}", host.graphics.devices.size(),
                        host.graphics.devices.size() == 1 ? "" : "s");
  return absent.empty() ? reason : fmt::format("{}; building it will need {}", reason, fmt::join(absent, ", "));
}

std::vector<Backend> backends(const HostInventory& host) {
  return {{"cpu", true, fmt::format("Eigen, {} threads", host.processor.usable)},
          {"cuda", kernel::count_gpus().count > 0, cuda_reason(host)}};
}

const char* yes_no(bool value) { return value ? "yes" : "no"; }

/// One row of the report.
struct Part {
  std::string name;
  bool found;
  std::string detail;
};

std::vector<Part> parts(const HostInventory& host) {
  const HostProcessor& cpu = host.processor;
  const HostGpus& gpu = host.graphics;
  std::vector<Part> all = {
      {"processor", true, cpu.model},
      {"cores", true, fmt::format("{}, {} usable", cpu.cores, cpu.usable)},
      {"memory", true, fmt::format("{}, {} free", to_string(cpu.memory), to_string(cpu.available))},
      {"instructions", true,
       fmt::format("AVX2 {}, FMA {}, AVX-512 {}", yes_no(cpu.avx2), yes_no(cpu.fma), yes_no(cpu.avx512))},
      {"GPU", !gpu.devices.empty(),
       gpu.devices.empty() ? "none found (no /proc/driver/nvidia, no /dev/nvidia0)"
                           : fmt::format("{}", fmt::join(gpu.devices, ", "))},
      {"GPU driver", gpu.driver.has_value(),
       fmt::format("{}, {}", gpu.driver.value_or("no kernel module"),
                   gpu.cuda ? "CUDA up to " + *gpu.cuda : "no libcuda.so.1")}};
  for (const HostDependency& item : host.dependencies) all.push_back({item.name, item.found, item.detail});
  return all;
}

std::string as_table(const HostInventory& host, std::size_t width) {
  std::string text;
  for (const Part& part : parts(host)) text += report::hanging(fmt::format("{:<14}", part.name), part.detail, width);
  text += "\nbackends\n";
  for (const Backend& backend : backends(host))
    text += report::hanging(fmt::format("  {:<12}", backend.name),
                            fmt::format("{}: {}", backend.available ? "ready" : "missing", backend.reason), width);
  return text;
}

std::string as_csv(const HostInventory& host) {
  report::Table table({"part", "found", "detail"});
  for (const Part& part : parts(host)) table.add({part.name, yes_no(part.found), part.detail});
  for (const Backend& backend : backends(host))
    table.add({backend.name + " backend", yes_no(backend.available), backend.reason});
  return table.csv();
}

OrderedJson text_or_null(const std::optional<std::string>& text) {
  return text ? OrderedJson(*text) : OrderedJson(nullptr);
}

std::string as_json(const HostInventory& host) {
  const HostProcessor& cpu = host.processor;
  OrderedJson out;
  out["processor"] = {{"model", cpu.model},
                      {"cores", cpu.cores},
                      {"usable_cores", cpu.usable},
                      {"memory_bytes", static_cast<std::int64_t>(cpu.memory.si)},
                      {"available_bytes", static_cast<std::int64_t>(cpu.available.si)},
                      {"avx2", cpu.avx2},
                      {"fma", cpu.fma},
                      {"avx512", cpu.avx512}};
  out["gpu"] = {{"devices", host.graphics.devices},
                {"driver", text_or_null(host.graphics.driver)},
                {"cuda", text_or_null(host.graphics.cuda)}};
  for (const HostDependency& item : host.dependencies)
    out["dependencies"].push_back({{"name", item.name}, {"found", item.found}, {"detail", item.detail}});
  for (const Backend& backend : backends(host))
    out["backends"].push_back({{"name", backend.name}, {"available", backend.available}, {"reason", backend.reason}});
  return out.dump(2) + "\n";
}

std::string formatted(const HostInventory& host, const Shared& shared) {
  return shared.format == "json"  ? as_json(host)
         : shared.format == "csv" ? as_csv(host)
                                  : as_table(host, result_width(shared));
}

void declare_doctor(Parser command, Shared& shared) {
  add_format(command, shared, {"table", "json", "csv"});
  add_output(command, shared);
  command.callback([&shared] { emit(shared, formatted(take_host_inventory(), shared)); });
}

}  // namespace

Command doctor_command() {
  return {.name = "doctor",
          .summary = "what was found on this machine, and why a backend is missing",
          .examples =
              "  ganymede doctor\n"
              "  ganymede doctor --format json\n",
          .about =
              "Lists processor, memory, GPUs, drivers and libraries, and says for each backend that cannot be used\n"
              "what is missing.",
          .declare = declare_doctor};
}

}  // namespace ganymede::cli
