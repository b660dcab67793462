#pragma once
// Times jobs of collectives on a fabric at the fidelity that the caller wants.

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "sim/collectives/allreduce.hpp"
#include "sim/engine/collective_jobs.hpp"
#include "sim/engine/fabric_graph.hpp"
#include "sim/engine/folded_engine.hpp"

namespace ganymede::sim {

enum class CollectiveFidelity { message, folded };
std::string_view to_string(CollectiveFidelity fidelity);  ///< "message", "folded"

struct TimedJobs {
  JobTimes times;
  CollectiveFidelity fidelity = CollectiveFidelity::message;  ///< the one that was used
  Bottleneck bottleneck;                                      ///< found by folded simulation, at either fidelity
  double difference = 0;                                      ///< FoldedTimes::difference
};

/// Times jobs. A `record` is called for every message, which forces message fidelity whatever `wanted` says. A process
/// may run only one simulation at message fidelity; to run more, fork (common/process.hpp).
TimedJobs time_jobs(const FabricGraph& fabric, std::span<const Job> jobs, CollectiveFidelity wanted,
                    const RecordTransfer& record = {}, double tolerance = kFoldingTolerance);

/// The time of a schedule over `members`, or all ranks if there are none, that call together; nothing else happens.
Seconds time_alone(const FabricGraph& fabric, const Schedule& schedule, const std::vector<int>& members = {});

/// Plans a collective of all ranks of the fabric. Where a curve was measured (FabricGraph::measured), the schedule is
/// stretched so that alone it takes the measured time; on another number of nodes or GPUs, or with another algorithm,
/// by what the curve has over its links at that size. Another scheme or collective keeps to the links.
Schedule plan_on(const FabricGraph& fabric, const Scheme& scheme, std::int64_t bytes, Collective collective);

}  // namespace ganymede::sim
