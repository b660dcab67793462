#pragma once
// How long collectives take on a fabric, at the fidelity asked for or the one that applies.

#include <span>
#include <string>
#include <string_view>

#include "sim/engine/collective_jobs.hpp"
#include "sim/engine/fabric_graph.hpp"
#include "sim/engine/folded_engine.hpp"

namespace ganymede {

enum class CollectiveFidelity { message, folded };
std::string_view to_string(CollectiveFidelity fidelity);  ///< "message", "folded"

struct TimedJobs {
  JobTimes times;
  CollectiveFidelity fidelity = CollectiveFidelity::message;  ///< which was used
  Limit limit;                                                ///< of the folded simulation, whichever was used
};

/// Folded falls back to message where it does not apply. `record` is called for every message and makes the fidelity
/// message. At most one simulation at message fidelity a process: fork (common/process.hpp).
TimedJobs time_jobs(const FabricGraph& fabric, std::span<const Job> jobs, CollectiveFidelity wanted,
                    const RecordTransfer& record = {});

}  // namespace ganymede
