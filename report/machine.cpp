#include "report/machine.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "common/units.hpp"
#include "report/table.hpp"
#include "report/wrap.hpp"

namespace ganymede::report {
namespace {

const char* yes_no(bool value) { return value ? "yes" : "no"; }

std::vector<HostDependency> parts_of(const HostInventory& machine) {
  const HostProcessor& cpu = machine.processor;
  const HostGpus& gpu = machine.graphics;
  std::vector<HostDependency> parts = {
      {"processor", true, cpu.model},
      {"cores", true, fmt::format("{}, {} usable", cpu.cores, cpu.usable)},
      {"memory", true, fmt::format("{}, {} free", to_string(cpu.memory), to_string(cpu.available))},
      {"instructions", true,
       fmt::format("AVX2 {}, FMA {}, AVX-512 {}", yes_no(cpu.avx2), yes_no(cpu.fma), yes_no(cpu.avx512))},
      {"GPU", !gpu.devices.empty(),
       gpu.devices.empty() ? "none found (no /proc/driver/nvidia, no /dev/nvidia0)"
                           : fmt::format("{}", fmt::join(gpu.devices, ", "))},
      {"GPU driver", gpu.driver.has_value(),
       gpu.driver.value_or("no kernel module") + ", " + (gpu.cuda ? "CUDA up to " + *gpu.cuda : "no libcuda.so.1")}};
  parts.insert(parts.end(), machine.dependencies.begin(), machine.dependencies.end());
  return parts;
}

}  // namespace

std::string machine_text(const HostInventory& machine, const std::vector<HostDependency>& backends, std::size_t width) {
  std::string text;
  for (const HostDependency& part : parts_of(machine))
    text += hanging(fmt::format("{:<14}", part.name), part.detail, width);
  text += "\nbackends\n";
  for (const auto& [name, available, reason] : backends)
    text +=
        hanging(fmt::format("  {:<12}", name), fmt::format("{}: {}", available ? "ready" : "missing", reason), width);
  return text;
}

std::string machine_csv(const HostInventory& machine, const std::vector<HostDependency>& backends) {
  Table table({"part", "found", "detail"});
  for (const auto& [name, found, detail] : parts_of(machine)) table.add({name, yes_no(found), detail});
  for (const auto& [name, available, reason] : backends) table.add({name + " backend", yes_no(available), reason});
  return table.csv();
}

}  // namespace ganymede::report
