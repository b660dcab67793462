#include "calibration/gpu_list.hpp"

#include <fmt/format.h>

#include <map>
#include <set>

#include "calibration/kernels/gpu_sheets.hpp"
#include "common/units.hpp"

namespace ganymede::calibration {
namespace {

std::string with_commas(const std::set<std::string>& names) { return fmt::format("{}", fmt::join(names, ", ")); }

}  // namespace

std::vector<platforms::ListedName> list_gpus() {
  std::map<std::string, std::set<std::string>> providers_of;  // by the sheet's name, else by the catalog's
  std::map<std::string, std::string> others;
  platforms::for_each_instance([&](const platforms::Platform& platform, const platforms::Instance& instance) {
    const platforms::Gpu& gpu = platform.gpu_of(instance);
    const GpuSheet* sheet = find_gpu_sheet(gpu.name);
    const std::string& name = sheet == nullptr ? gpu.name : sheet->name;
    providers_of[name].insert(platform.name);
    if (sheet == nullptr)
      others[name] = fmt::format("{} fp32, {}", to_string(gpu.fp32), to_string(gpu.memory_bandwidth));
  });
  std::vector<platforms::ListedName> rows;
  const auto add = [&](const std::string& name, std::string summary) {
    if (const auto found = providers_of.find(name); found != providers_of.end())
      summary += "; " + with_commas(found->second);
    rows.push_back({name, std::move(summary)});
  };
  for (const GpuSheet& gpu : gpu_sheets()) {
    std::string summary =
        fmt::format("{} multiprocessors, {} fp32, {}", gpu.multiprocessors, to_string(FlopsPerSecond{gpu.fp32_flops()}),
                    to_string(BytesPerSecond{gpu.memory_bandwidth}));
    if (gpu.tensor_fp16_flops > 0)
      summary += fmt::format(", {} on tensor cores", to_string(FlopsPerSecond{gpu.tensor_fp16_flops}));
    add(gpu.name, std::move(summary));
  }
  for (const auto& [name, summary] : others) add(name, summary + "; times of its kernels are not known");
  return rows;
}

}  // namespace ganymede::calibration
