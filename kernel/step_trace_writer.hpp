#pragma once
// Turns what a StepClock recorded into the structures of a step trace.

#include <string>
#include <vector>

#include "kernel/gan.hpp"
#include "kernel/step_clock.hpp"
#include "traces/step_trace.hpp"

namespace ganymede::kernel {

/// Gradients are reduced in buckets of whole layers, from the last layer on. A bucket is closed before it would exceed
/// this size. PyTorch's DistributedDataParallel uses 25 MiB, which is too coarse for gradients of 8 MB.
inline constexpr double kBucketBytes = 4 * 1048576.0;

/// Divides a network's layers into buckets. `ready_s[i]` is the time from the start of phase `after` until layer i's
/// gradients were final, and `phase_s` the length of that phase, both summed over the same steps.
std::vector<traces::TraceBucket> make_buckets(const Network& network, const std::vector<double>& ready_s,
                                              double phase_s, Phase after);

/// The phases, buckets and wall times of what was recorded, without the first `warmup` steps.
traces::TraceBatch make_trace_batch(const Gan& gan, const StepClock& clock, std::size_t warmup);

}  // namespace ganymede::kernel
