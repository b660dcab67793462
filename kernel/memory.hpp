#pragma once
// Whether a training fits the memory that there is.

#include <cstdint>

#include "kernel/train.hpp"

namespace ganymede::kernel {

/// What the training will allocate at most, in bytes, whatever stages it grows through. The options must be checked.
double predicted_memory_bytes(const TrainOptions& options, const Ops& ops);

/// Infeasible when that is more than `available` bytes, naming the largest batch that fits; 0: not known.
void check_memory(const TrainOptions& options, const Ops& ops, double available);

}  // namespace ganymede::kernel
