#pragma once
// Times an all-reduce that is executed for real, as nccl-tests does: after a warm-up, repeated, with checked results.

#include <string>

#include "kernel/parallel/gpu_exchange.hpp"
#include "rehearsal/group.hpp"
#include "sim/collectives/schedule.hpp"

namespace ganymede::rehearsal {

/// Known at rank 0.
struct TimedCall {
  double median_s = 0;           ///< from the first start to the last end of a call
  double low_s = 0, high_s = 0;  ///< 95 % interval of the median, from order statistics
  int repeats = 0;
  double spread_s = 0;     ///< median of the time between the first and the last start: the machine's own noise
  double processor_s = 0;  ///< processor time of a call, mean over ranks
};

/// Calls the all-reduce of `schedule` on all ranks, which start at agreed moments, and checks every sum on every rank.
/// Throws Failure on all ranks if one is wrong. `what` names the call in errors. The buffers are on the ranks' GPUs
/// unless `gpu` is null. `repeats` calls are timed; 0: as many as a second holds, from 7 to 101.
TimedCall time_call(Group& group, kernel::GpuExchange* gpu, const sim::Schedule& schedule, const std::string& what,
                    int repeats = 0);

}  // namespace ganymede::rehearsal
