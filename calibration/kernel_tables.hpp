#pragma once
// A step kernel by kernel, and the errors of the model on measured kernels, as documents and for people.

#include <span>
#include <string>
#include <vector>

#include "calibration/kernel_steps.hpp"
#include "calibration/kernels/gpu_sheets.hpp"
#include "calibration/kernels/measured_kernels.hpp"
#include "common/json_fwd.hpp"
#include "platforms/catalog_lists.hpp"

namespace ganymede::calibration {

// How far the model of kernel times is off on measured kernels.

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

/// The kernels of a model's step on a GPU.
struct KernelStep {
  std::string gpu, model, precision, executor;
  int batch = 0;
  std::vector<StepKernel> kernels;
  StepSum sum;
};

/// The kernels that `trace` lists, for a step of `batch` images on the model's GPU. `trace` may be a list of kernels
/// without recorded steps; then only its kernels and how they run matter.
KernelStep kernel_step(const traces::StepTrace& trace, const KernelModel& model, int batch);

/// The table fits `width` columns; `verbose`: with every figure of each kernel.
std::string to_table(const KernelStep& step, bool verbose, std::size_t width);
std::string to_csv(const KernelStep& step);
OrderedJson to_json(const KernelStep& step);

std::string to_table(const std::vector<KernelErrors>& errors, std::size_t width);
std::string to_csv(const std::vector<KernelErrors>& errors);
OrderedJson to_json(const std::vector<KernelErrors>& errors);

// The GPUs that catalogs have or whose kernel times are known.

/// GPUs whose kernel times are known, with the providers that have them, then everything else that the catalogs have.
std::vector<platforms::ListedName> list_gpus();

}  // namespace ganymede::calibration
