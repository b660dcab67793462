#pragma once
// Collectives on a fabric without simulating every message: one of each class of ranks, links and messages that cannot
// be told apart (symmetry.hpp), and of rounds that repeat only so many as it takes until the state repeats too. What is
// left is simulated flow by flow with our own max-min shares (fluid.hpp), by the same rules as CommunicationEngine's,
// whose times it must equal within 1e-6.

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "sim/engine/collective_jobs.hpp"
#include "sim/engine/fabric_graph.hpp"

namespace ganymede {

/// What the time of jobs is made of, found by taking each cost away in turn: which saves the most.
struct Limit {
  /// "latency"; "reduction"; "per_flow", what one connection reaches on links that have more to give; "protocol", the
  /// same where the scheme's protocol sets it; or the kind of the busiest link: "nic.up", "gpu_link.down". "": nothing.
  std::string what;
  double share = 0;  ///< of the time, saved without it
};

struct FoldedTimes {
  JobTimes times;
  int classes = 0;                  ///< of ranks and switches, of all communicators
  std::int64_t members = 0;         ///< how many ranks and switches there are
  std::int64_t flows = 0;           ///< that were simulated
  std::int64_t rounds_skipped = 0;  ///< of classes, as repetitions
  Limit limit;                      ///< where it was asked for
};

/// Independent of earlier calls; any number a process. It always has an answer; where neither ranks nor rounds fold it
/// is a simulation of every message, though not by SimGrid.
///
/// `explain` finds the limit too, at the cost of up to five more simulations.
FoldedTimes run_folded(const FabricGraph& fabric, std::span<const Job> jobs, bool explain = false);

/// How long after the last arrival every rank ends this all-reduce, whatever the arrivals; nullopt where that is not
/// proved.
///
/// It is where, with equal arrivals, all ranks are of one class, take part in every round and share no link, so that
/// round r takes w_r everywhere. Starting all at the last arrival can only be later: durations are constants, so ends
/// are sums and maxima of arrivals. And no rank can be earlier: it needs the last rank's contribution, which comes to
/// it over one place a round, moving or waiting, and each round takes w_r wherever that is.
std::optional<Seconds> time_after_last_arrival(const FabricGraph& fabric, const Schedule& all_reduce);

}  // namespace ganymede
