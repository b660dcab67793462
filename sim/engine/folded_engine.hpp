#pragma once
// Collectives on a fabric without simulating every message. Ranks, links and messages that are symmetric form classes,
// of which one member is simulated (symmetry.hpp); repeated rounds are skipped once the state repeats
// (folded_simulation.hpp). The rest is simulated flow by flow with max-min fair rates (max_min_solver.hpp). The rules
// are CommunicationEngine's, whose times must be equal within 1e-6.

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "sim/engine/collective_jobs.hpp"
#include "sim/engine/fabric_graph.hpp"

namespace ganymede::sim {

/// The cost whose removal would shorten jobs the most.
struct Bottleneck {
  /// "latency"; "reduction"; "per_flow": the platform's limit of one connection, on links with bandwidth to spare;
  /// "protocol": the same limit if the scheme's protocol sets it; or the kind of the busiest link, for example "nic.up"
  /// or "gpu_link.down". "": nothing takes time.
  std::string what;
  double share = 0;  ///< share of the time that the removal saves
};

struct FoldedTimes {
  JobTimes times;
  int classes = 0;                  ///< number of classes of ranks and switches, over all communicators
  std::int64_t members = 0;         ///< ranks and switches in these classes
  std::int64_t flows = 0;           ///< number of simulated flows
  std::int64_t rounds_skipped = 0;  ///< number of rounds skipped as repetitions, summed over classes
  Bottleneck bottleneck;            ///< set if `explain` is true
  /// 0: the times are exact. Else this is the largest difference to the end of a call, relative to the time of all,
  /// that refining the partition before made, if the last one is not equitable (symmetry.hpp); or that nudges of a
  /// picosecond made, where that is more than 1e-6 (sought if `explain` is true, and the simulation is not large).
  double difference = 0;
};

/// The tolerance where nobody asks for another.
inline constexpr double kFoldingTolerance = 1e-3;

/// Times jobs. Calls are independent, and a process may make any number of them. If neither ranks nor rounds can be
/// folded, it simulates every message, though not with SimGrid. `explain` also finds the bottleneck, at the cost of up
/// to six more simulations of few classes. If there are some thousands of classes, coarser partitions are refined until
/// the next one changes no time by more than `tolerance` of the whole; 0: the times are exact.
FoldedTimes run_folded(const FabricGraph& fabric, std::span<const Job> jobs, bool explain = false,
                       double tolerance = kFoldingTolerance);

/// Returns the time between the last arrival and the end of every rank of this all-reduce, if that time is proved to be
/// the same for all arrivals; else nullopt.
///
/// It is proved if, with equal arrivals, all ranks form one class, take part in every round and share no link, so that
/// round r takes the same time w_r everywhere. If all ranks started at the last arrival, none would end earlier:
/// durations are constants, so ends are sums and maxima of arrivals. And no rank can end earlier than that: it needs
/// the last rank's contribution, which moves or waits in every round, and each round takes w_r wherever it is.
std::optional<Seconds> time_after_last_arrival(const FabricGraph& fabric, const Schedule& all_reduce);

}  // namespace ganymede::sim
