#pragma once
// The kernels of a model's step on a GPU, for `ganymede kernels`.

#include <string>
#include <vector>

#include "calibration/kernel_steps.hpp"

namespace ganymede::cli {

struct KernelWorkloadOptions {
  std::string gpu, catalog, model;
  std::string precision, executor;  ///< empty: those of the model
  int batch = 64;
};

struct KernelStep {
  std::string gpu, model, precision, executor;
  int batch = 0;
  std::vector<calibration::StepKernel> kernels;
  calibration::StepSum sum;
};

/// Throws ConfigError for a model or GPU that is not known, with the nearest name, for a GPU whose number of
/// multiprocessors is not stated, and for a trace that lists no kernels.
KernelStep kernel_step(const KernelWorkloadOptions& options);

}  // namespace ganymede::cli
