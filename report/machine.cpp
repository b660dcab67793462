#include "report/machine.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <vector>

#include "common/json_value.hpp"
#include "common/units.hpp"
#include "report/table.hpp"
#include "report/wrap.hpp"

namespace ganymede::report {
namespace {

const char* yes_no(const OrderedJson& value) { return value.get<bool>() ? "yes" : "no"; }

std::string bytes_text(const OrderedJson& value) { return to_string(Bytes{value.get<double>()}); }

struct MachinePart {
  std::string name;
  bool found = true;
  std::string detail;
};

std::vector<MachinePart> parts_of(const OrderedJson& machine) {
  const OrderedJson &cpu = machine.at("processor"), &gpu = machine.at("gpu");
  const auto devices = gpu.at("devices").get<std::vector<std::string>>();
  const auto text_or = [&](const char* key, const std::string& before, const std::string& otherwise) {
    return gpu.at(key).is_null() ? otherwise : before + gpu.at(key).get<std::string>();
  };
  std::vector<MachinePart> parts = {
      {"processor", true, cpu.at("model").get<std::string>()},
      {"cores", true, fmt::format("{}, {} usable", cpu.at("cores").get<int>(), cpu.at("usable_cores").get<int>())},
      {"memory", true,
       fmt::format("{}, {} free", bytes_text(cpu.at("memory_bytes")), bytes_text(cpu.at("available_bytes")))},
      {"instructions", true,
       fmt::format("AVX2 {}, FMA {}, AVX-512 {}", yes_no(cpu.at("avx2")), yes_no(cpu.at("fma")),
                   yes_no(cpu.at("avx512")))},
      {"GPU", !devices.empty(),
       devices.empty() ? "none found (no /proc/driver/nvidia, no /dev/nvidia0)"
                       : fmt::format("{}", fmt::join(devices, ", "))},
      {"GPU driver", !gpu.at("driver").is_null(),
       text_or("driver", "", "no kernel module") + ", " + text_or("cuda", "CUDA up to ", "no libcuda.so.1")}};
  for (const OrderedJson& item : machine.at("dependencies"))
    parts.push_back(
        {item.at("name").get<std::string>(), item.at("found").get<bool>(), item.at("detail").get<std::string>()});
  return parts;
}

}  // namespace

std::string machine_text(const OrderedJson& machine, std::size_t width) {
  std::string text;
  for (const MachinePart& part : parts_of(machine))
    text += hanging(fmt::format("{:<14}", part.name), part.detail, width);
  text += "\nbackends\n";
  for (const OrderedJson& backend : machine.at("backends"))
    text += hanging(fmt::format("  {:<12}", backend.at("name").get<std::string>()),
                    fmt::format("{}: {}", backend.at("available").get<bool>() ? "ready" : "missing",
                                backend.at("reason").get<std::string>()),
                    width);
  return text;
}

std::string machine_csv(const OrderedJson& machine) {
  Table table({"part", "found", "detail"});
  for (const MachinePart& part : parts_of(machine)) table.add({part.name, part.found ? "yes" : "no", part.detail});
  for (const OrderedJson& backend : machine.at("backends"))
    table.add({backend.at("name").get<std::string>() + " backend", yes_no(backend.at("available")),
               backend.at("reason").get<std::string>()});
  return table.csv();
}

}  // namespace ganymede::report
