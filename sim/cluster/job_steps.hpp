#pragma once
// The steps of a job on its GPUs, whose collectives are sent message by message in a simulation that other jobs share.

#include <span>
#include <utility>
#include <vector>

#include "sim/cluster/cluster_state.hpp"
#include "sim/engine/communication_engine.hpp"
#include "sim/steps/step_distribution_cache.hpp"
#include "sim/steps/step_simulator.hpp"

namespace ganymede::sim {

class JobSteps {
 public:
  /// The mode must be all-reduce with whole replicas. `live`, `scenario` and `cache` must outlive it.
  JobSteps(LiveSimulation& live, const Scenario& scenario, StepDistributionCache& cache, std::uint64_t seed);

  double messages_a_step() const;
  const Topology& topology() const { return topology_; }
  /// By endpoint of the schedules: its number in the network of `live`.
  void place(std::vector<int> endpoints) { endpoints_ = std::move(endpoints); }
  /// When the step that begins now ends; its collectives have ended when this returns.
  double next_end();

 private:
  std::vector<std::vector<Seconds>> reduce(std::span<const Reduction> reductions);

  LiveSimulation& live_;
  Configuration configuration_;
  std::vector<calibration::WorkloadModel> workloads_;
  StepSimulator simulator_;
  StepSimulator::Live steps_;
  Topology topology_;
  std::vector<Schedule> schedules_;  // by bucket
  std::vector<int> endpoints_;
  double clock_s_ = 0;   // of the steps, without the waits for images
  double offset_s_ = 0;  // the simulation's clock minus that of the steps
};

/// By endpoint of the schedules of a job, whose rank i is the endpoint members[i] of its pool: the endpoint there.
std::vector<int> endpoints_of(const Topology& job, std::vector<int> members, const FabricGraph& pool,
                              int gpus_per_node);

// The beat of jobs that share links: some steps of each, message by message.

/// The mean step of each of these jobs, which share links of one pool, from their phases on. Empty if that takes more
/// messages than `messages_left`, which becomes less by those that are simulated, or than one group may take.
std::vector<double> beat(const ClusterContext& context, const std::vector<const RunningJob*>& jobs,
                         double& messages_left);

}  // namespace ganymede::sim
