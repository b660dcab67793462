#pragma once
// Whether a training fits into the device's memory.

#include <cstdint>

#include "kernel/train.hpp"

namespace ganymede::kernel {

/// Peak bytes of device memory that the training will allocate, over all stages of a growing model. `options` must have
/// passed check().
double predicted_memory_bytes(const TrainOptions& options, const TensorOps& ops);

/// Throws Infeasible if the training needs more than `available` bytes of device memory; the message names the largest
/// batch that fits. `available` is 0 if it is not known; then nothing is checked.
void check_memory(const TrainOptions& options, const TensorOps& ops, double available);

}  // namespace ganymede::kernel
