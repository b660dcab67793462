#pragma once
// The launches of a training's step on a GPU, kernel by kernel, without training.

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "kernel/models/models.hpp"
#include "kernel/ops/cuda/cuda_backend.hpp"
#include "kernel/train.hpp"
#include "traces/step_trace.hpp"

namespace ganymede::kernel {

/// A backend that computes nothing: the GPU backend's operations on a device that counts what it is asked to launch. A
/// step on it takes microseconds and no memory, whatever the model's size. Its memory must not be read or written other
/// than through its operations.
std::unique_ptr<Backend> make_counting_backend(Precision precision = Precision::fp32);

struct StepLaunches {
  /// The kernels of each phase, in the order in which they are launched, with their shapes for one image. A training
  /// that computes activations again or compresses them lists none, because what it copies does not follow from one
  /// image.
  std::vector<traces::TraceKernel> kernels;
  std::map<std::string, std::int64_t> in_phases;  ///< number of launches in each phase
};

/// Returns what a step launches on a GPU for which the libraries have an algorithm for every call; a call of cuBLAS or
/// cuDNN counts as one launch. `options` must have passed check().
StepLaunches launches_of(const TrainOptions& options, Growth growth);
/// Returns the kernels of launches_of() alone.
std::vector<traces::TraceKernel> kernels_of(const TrainOptions& options, Growth growth);
/// Returns the kernels of a step of the model's final form, to which it grows.
std::vector<traces::TraceKernel> kernels_of(const TrainOptions& options);

}  // namespace ganymede::kernel
