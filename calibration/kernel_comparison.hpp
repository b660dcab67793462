#pragma once
// How far the model of kernel times is off on measured kernels.

#include <span>
#include <string>
#include <vector>

#include "calibration/kernels/gpu_sheets.hpp"
#include "calibration/kernels/measured_kernels.hpp"

namespace ganymede::calibration {

/// Errors over the kernels of one kind on one GPU. An error is a mean of |predicted / measured - 1|.
struct KernelErrors {
  std::string kind, gpu;  ///< the GPU as the file names it
  std::size_t kernels = 0;
  double mean_error = 0;   ///< of single kernels
  double sum20_error = 0;  ///< of sums of `summed` kernels
  std::size_t summed = 0;  ///< kSumOf, or all if there are fewer
  double held = 0;         ///< share of the measurements inside the 90 % interval
};

/// Predicts each kernel as the method of its set would have measured it. One entry for each kind and GPU, in the order
/// of kinds, then by name. Throws ConfigError with file and line for a GPU whose multiprocessors are not known.
std::vector<KernelErrors> compare(std::span<const MeasuredKernel> kernels);

/// Returns the kernels that were measured on one GPU, which has its name in `file` or in data sheets. Throws
/// ConfigError, which names --gpu and the GPUs of the file, if there are none.
std::vector<MeasuredKernel> kernels_on_gpu(std::vector<MeasuredKernel> kernels, const std::string& gpu,
                                           const std::string& file);

}  // namespace ganymede::calibration
