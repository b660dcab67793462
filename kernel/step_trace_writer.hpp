#pragma once
// From what the clock recorded to the step trace's structures.

#include <string>
#include <vector>

#include "kernel/gan.hpp"
#include "kernel/step_clock.hpp"
#include "traces/step_trace.hpp"

namespace ganymede::kernel {

/// Gradients are reduced in buckets of whole layers, the last layer first, closed before they would exceed this;
/// PyTorch's DistributedDataParallel uses 25 MiB, too coarse for gradients of 8 MB.
inline constexpr double kBucketBytes = 4 * 1048576.0;

/// `ready_s[i]`: time from the start of phase `after` until layer i's gradients were final; `phase_s`: the phase's
/// length; both summed over the same steps.
std::vector<TraceBucket> make_buckets(const Network& network, const std::vector<double>& ready_s, double phase_s,
                                      Phase after);

/// Phases, buckets and wall times without the first `warmup` steps.
TraceBatch make_trace_batch(const Gan& gan, const StepClock& clock, std::size_t warmup);

}  // namespace ganymede::kernel
