// ganymede doctor: what was found on this machine, and why a backend is missing.

#include <fmt/format.h>

#include <algorithm>

#include "cli/command.hpp"
#include "cli/terminal.hpp"
#include "common/host_inventory.hpp"
#include "common/json_value.hpp"
#include "kernel/ops/cuda/cuda_backend.hpp"
#include "report/machine.hpp"

namespace ganymede::cli {
namespace {

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

std::string inventory_text(const Shared& shared) {
  const HostInventory host = take_host_inventory();
  const std::vector<HostDependency> backends = {{"cpu", true, fmt::format("Eigen, {} threads", host.processor.usable)},
                                                {"cuda", kernel::count_gpus().count > 0, cuda_reason(host)}};
  if (shared.format == "csv") return report::machine_csv(host, backends);
  if (shared.format != "json") return report::machine_text(host, backends, result_width(shared));
  OrderedJson machine = to_json(host);
  for (const auto& [name, available, reason] : backends)
    machine["backends"].push_back({{"name", name}, {"available", available}, {"reason", reason}});
  return machine.dump(2) + "\n";
}

void declare_doctor(Parser command, Shared& shared) {
  add_format(command, shared, {"table", "json", "csv"});
  add_output(command, shared);
  command.callback([&shared] { emit(shared, inventory_text(shared)); });
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
