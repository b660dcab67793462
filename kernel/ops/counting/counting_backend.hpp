#pragma once
// A backend that computes nothing: the GPU backend's operations on a device that counts what it is asked to launch. A
// step on it takes microseconds and no memory, whatever the model's size.

#include <memory>

#include "kernel/ops/backend.hpp"
#include "kernel/ops/cuda/cuda_backend.hpp"

namespace ganymede::kernel {

/// Its memory must not be read or written other than through its operations.
std::unique_ptr<Backend> make_counting_backend(Precision precision = Precision::fp32);

}  // namespace ganymede::kernel
