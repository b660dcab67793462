#pragma once
// Schedules executed between processes, with what was predicted beside what was measured.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "common/json_fwd.hpp"
#include "kernel/parallel/gpu_exchange.hpp"
#include "rehearsal/execution.hpp"
#include "rehearsal/group.hpp"
#include "rehearsal/local_hosts.hpp"
#include "sim/collectives/allreduce.hpp"
#include "sim/collectives/schedule.hpp"
#include "sim/engine/fabric_graph.hpp"

namespace ganymede::rehearsal {

/// The messages of a rank's GPU. NCCL executes what a stream is given in its order, so that the lanes of a schedule
/// share rounds: those of the same number are one. It cannot deadlock, for the reason that Execution cannot.
std::vector<kernel::GpuRound> gpu_rounds(const RankPlan& plan);

// Times an all-reduce that is executed for real, as nccl-tests does: after a warm-up, repeated, with checked results.

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

// The simulated time of a schedule that is executed for real.

struct RealAllReduce {
  std::vector<sim::Scheme> schemes = {};
  std::vector<std::int64_t> sizes = {};      ///< bytes
  int gpus_per_node = 0;                     ///< without a fabric: ranks on a node; 0: one
  const sim::FabricGraph* fabric = nullptr;  ///< null: nothing is predicted
  std::string backend = "auto";              ///< cpu, cuda, or auto: cuda if each rank has a GPU of its own
  int repeats = 0;                           ///< calls that are timed; 0: as many as a second holds
  HostsChoice hosts = {};
  bool is_fitted = false;  ///< links are to be fitted to the times, which takes two sizes,
  bool has_links = false;  ///< and a fabric of one instance type
  /// Called at rank 0 with the number of calls; returns what is called with the number of those that are done.
  std::function<std::function<void(std::size_t)>(std::size_t)> show = {};
};

/// Executes every scheme at every size between the processes that a launcher started, or that this one starts on this
/// machine. Returns at rank 0 { "heading", "ping", "messenger", "scale", "rows" }, with a row of docs/rehearse.md for
/// each call, all sizes and for each size all schemes; null elsewhere. Throws ConfigError, which names the option, if
/// the processes, the sizes or the network do not suit, and Failure if a sum is wrong.
OrderedJson real_allreduce(const RealAllReduce& request, const Remark& remark);

}  // namespace ganymede::rehearsal
