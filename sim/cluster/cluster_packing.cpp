// Which two jobs share a GPU.

#include <fmt/format.h>

#include "sim/cluster/cluster_simulation.hpp"

namespace ganymede::sim {
namespace {

constexpr std::size_t kMostPackable = 64;  // waiting jobs that are tried as a second job of a GPU

}  // namespace

/// Says which jobs share no GPU although they might, and for which the speeds on a shared one are estimated.
void ClusterSimulation::warn_of_packing() {
  for (std::size_t job = 0; job < cluster_.jobs.size(); ++job) {
    if (cluster_.jobs[job].gpus != 1) continue;
    const std::string model = model_of(job).first;
    if (model.empty()) {
      speeds_.warn(fmt::format("jobs of the workload \"{}\" share no GPU: packing is for measured models",
                               cluster_.workloads[cluster_.jobs[job].workload].name));
      continue;
    }
    for (const ScenarioPool& pool : cluster_.pools)
      if (!cluster_.throughputs->is_measured_beside(pool.gpu().family, model))
        speeds_.warn(fmt::format(
            "{} was not measured beside other jobs on a {}: its speeds on a shared one are estimated from how busy the "
            "other keeps it, and two such jobs share none",
            model, pool.gpu().family));
  }
}

/// Puts waiting jobs of one GPU beside running ones, each where the two are fastest together.
void ClusterSimulation::pack() {
  std::size_t tried = 0;
  for (const std::size_t job : active_) {
    if (cluster_.jobs[job].gpus != 1 || model_of(job).first.empty() || states_[job].running) continue;
    if (++tried > kMostPackable) break;
    double best = cluster_.packing;
    bool estimated = false;
    RunningJob* host = nullptr;
    for (RunningJob& running : running_) {
      if (running.partner || running.slots.size() != 1 || model_of(running.job).first.empty()) continue;
      const auto both = cluster_.throughputs->together(cluster_.pools[running.pool].gpu().family, model_of(running.job),
                                                       model_of(job));
      if (!both || both->first + both->second < best || (host != nullptr && both->first + both->second == best))
        continue;
      best = both->first + both->second;
      host = &running;
      estimated = both->estimated;
    }
    if (host != nullptr) pair_up(*host, job, estimated);
  }
}

}  // namespace ganymede::sim
