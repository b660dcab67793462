#pragma once
// Times jobs of collectives on a fabric at the fidelity that the caller wants.

#include <span>
#include <string>
#include <string_view>

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
};

/// Times jobs. A `record` is called for every message, which forces message fidelity whatever `wanted` says. A process
/// may run only one simulation at message fidelity; to run more, fork (common/process.hpp).
TimedJobs time_jobs(const FabricGraph& fabric, std::span<const Job> jobs, CollectiveFidelity wanted,
                    const RecordTransfer& record = {});

}  // namespace ganymede::sim
