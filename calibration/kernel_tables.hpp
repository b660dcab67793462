#pragma once
// A step kernel by kernel, and the errors of the model on measured kernels, as documents and for people.

#include <string>
#include <vector>

#include "calibration/kernel_comparison.hpp"
#include "calibration/kernel_steps.hpp"
#include "common/json_fwd.hpp"

namespace ganymede::calibration {

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

}  // namespace ganymede::calibration
