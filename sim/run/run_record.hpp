#pragma once
// What a finished run leaves behind. A result's times, bill, energy and warnings are functions of a scenario and of
// this record alone; none of them needs the simulation again.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "sim/ledger/bill.hpp"
#include "sim/ledger/ledger.hpp"
#include "sim/run/fleet.hpp"
#include "sim/run/result.hpp"
#include "sim/run/run_clock.hpp"
#include "sim/run/training.hpp"
#include "sim/steps/step_distribution_cache.hpp"

namespace ganymede::sim {

struct RunRecord : TrainingAccount {
  Nanoseconds end = 0;  ///< when the last step, or the checkpoint after it, was done
  /// Every node that was ever requested, in the order of the requests.
  std::vector<Node> nodes;
  /// When training was under way: spans in ascending order that do not overlap.
  std::vector<Span> trained;

  double steps = 0, images = 0;  ///< trained towards the target, without lost ones
  Seconds lost_training{0};      ///< training time that had to be done again
  std::int64_t losses = 0;       ///< nodes taken back or crashed
  int most_gpus = 0;             ///< the most GPUs that trained at once
  BytesBetween moved;            ///< dataset and checkpoints on their way to other regions
  double nodes_usd = 0;          ///< price of the time that nodes were held, without the provider's rounding

  /// Distributions from which steps were taken, by descending number of steps. The cache that made them owns them.
  std::vector<const StepDistribution*> distributions;
  /// For each pool the workload in the last stage; none for a pool of which no node was held.
  std::vector<std::optional<WorkloadSummary>> workloads;
  std::vector<RunEvent> events;
  bool events_truncated = false;  ///< more happened than `events` lists
};

/// Time summed over nodes: 64 bits hold only 292 node-years.
using NodeNanoseconds = GpuNanoseconds;
Seconds to_seconds(NodeNanoseconds time);

// Times for which nodes were held. `stretch` moves events to their times in a run that takes longer or shorter.

/// Node-nanoseconds from grant to release, over all nodes of a pool; the idle tail after the run is left out.
NodeNanoseconds held_time(const RunRecord& record, std::size_t pool, const Stretch& stretch = Stretch());

/// The same including the idle tail: the time for which the scenario keeps the last nodes after the last step.
NodeNanoseconds held_with_tail(const Scenario& scenario, const RunRecord& record, std::size_t pool,
                               const Stretch& stretch = Stretch());

/// held_with_tail of a stretched run over that of the run as it was; 1 for a pool that was not used. Energy at the same
/// power grows by this factor.
double held_ratio(const Scenario& scenario, const RunRecord& record, std::size_t pool, const Stretch& stretch);

/// Nodes of a pool that were held when the run ended.
int held_at_end(const RunRecord& record, std::size_t pool);

/// The most nodes, of all pools together, that were held at one time.
int most_held(const RunRecord& record);

/// The rentals of a pool's nodes as the provider meters them: from the point at which its billing starts, idle tail
/// included.
std::vector<Rental> rentals_of(const Scenario& scenario, const RunRecord& record, std::size_t pool,
                               const Stretch& stretch = Stretch());

/// GPU time of one pool that was held, each GPU-second in one use.
struct PoolAccount {
  std::size_t pool = 0;
  NodeNanoseconds held = 0;  ///< idle tail included
  GpuSeconds gpu_seconds;
};

/// The closed accounts of all pools of which a node was held, in the order of the scenario's pools.
std::vector<PoolAccount> close_accounts(const Scenario& scenario, const RunRecord& record);

// The list of what happened in a run, as its result shows it.

/// Largest number of entries that a log lists.
inline constexpr std::size_t kMaxListedEvents = 20'000;

class EventLog {
 public:
  /// Appends an entry. One that repeats the last, at the same time, adds its nodes to that entry instead: nodes that
  /// are requested together are one line. After kMaxListedEvents a last line says that no further ones follow.
  void append(RunEvent entry);

  const std::vector<RunEvent>& events() const { return events_; }
  /// True: more happened than is listed.
  bool truncated() const { return events_.size() > kMaxListedEvents; }

 private:
  std::vector<RunEvent> events_;
};

}  // namespace ganymede::sim
