#include "calibration/kernel_comparison.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "calibration/kernels/error_of_sums.hpp"
#include "calibration/kernels/row_predictor.hpp"
#include "common/errors.hpp"
#include "common/text.hpp"

namespace ganymede::calibration {

std::vector<KernelErrors> compare(std::span<const MeasuredKernel> kernels) {
  const RowPredictor predictor(built_in_kernel_parameters(), kernels);
  struct Compared {
    std::vector<std::pair<double, double>> kernels;  // predicted and measured seconds
    std::size_t held = 0;
  };
  std::map<std::pair<KernelKind, std::string>, Compared> groups;
  for (const MeasuredKernel& row : kernels) {
    const KernelTime time = predictor(row);
    Compared& group = groups[{row.kernel.kind, row.gpu}];
    group.kernels.emplace_back(time.central_s, row.measured_s);
    group.held += time.low_s <= row.measured_s && row.measured_s <= time.high_s;
  }
  RandomStream random(kSumSeed, "kernels/sums");
  std::vector<KernelErrors> all;
  for (const auto& [key, group] : groups) {
    KernelErrors& errors = all.emplace_back();
    errors.kind = to_string(key.first);
    errors.gpu = key.second;
    errors.kernels = group.kernels.size();
    const auto count = static_cast<double>(errors.kernels);
    for (const auto& [predicted, measured] : group.kernels) errors.mean_error += std::abs(predicted / measured - 1);
    errors.mean_error /= count;
    errors.held = static_cast<double>(group.held) / count;
    errors.summed = std::min(kSumOf, errors.kernels);
    errors.sum20_error = error_of_sums(group.kernels, random);
  }
  return all;
}

std::vector<MeasuredKernel> kernels_on_gpu(std::vector<MeasuredKernel> kernels, const std::string& gpu,
                                           const std::string& file) {
  const GpuSheet* wanted = find_gpu_sheet(gpu);
  std::vector<std::string> names;
  for (const auto& kernel : kernels)
    if (std::find(names.begin(), names.end(), kernel.gpu) == names.end()) names.push_back(kernel.gpu);
  std::erase_if(kernels, [&](const MeasuredKernel& kernel) {
    return kernel.gpu != gpu && (wanted == nullptr || find_gpu_sheet(kernel.gpu) != wanted);
  });
  if (kernels.empty())
    throw ConfigError(fmt::format("--gpu {}: {} has no kernel of it; it has {}", gpu, file, list_of(names)));
  return kernels;
}

}  // namespace ganymede::calibration
