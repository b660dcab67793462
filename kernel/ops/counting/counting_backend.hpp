#pragma once
// A backend that computes nothing: the GPU backend's operations on a device that counts what it is asked to launch. A
// step on it takes microseconds and no memory, whatever the model's size.

#include <memory>

#include "kernel/ops/backend.hpp"
#include "kernel/ops/cuda/cuda_backend.hpp"

namespace ganymede::kernel {

/// How to count the launches of a step with `batch` images by running one with `counted_batch`.
struct CountingOptions {
  int batch = 1, counted_batch = 1;
  Precision precision = Precision::fp32;
};

/// Its memory must not be read or written other than through its operations.
std::unique_ptr<Backend> make_counting_backend(const CountingOptions& options = {});

}  // namespace ganymede::kernel
