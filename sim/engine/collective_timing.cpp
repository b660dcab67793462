#include "sim/engine/collective_timing.hpp"

#include "sim/engine/communication_engine.hpp"

namespace ganymede::sim {

std::string_view to_string(CollectiveFidelity fidelity) {
  return fidelity == CollectiveFidelity::message ? "message" : "folded";
}

TimedJobs time_jobs(const FabricGraph& fabric, std::span<const Job> jobs, CollectiveFidelity wanted,
                    const RecordTransfer& record) {
  FoldedTimes folded = run_folded(fabric, jobs, true);
  if (wanted == CollectiveFidelity::folded && !record)
    return {std::move(folded.times), CollectiveFidelity::folded, folded.bottleneck};
  return {open_communication_engine(fabric)->run(jobs, record), CollectiveFidelity::message, folded.bottleneck};
}

}  // namespace ganymede::sim
