#pragma once
// The work of a scenario's ranks in each step of a rehearsal, and how long the simulator says that it takes.

#include <cstdint>
#include <vector>

#include "calibration/step_model.hpp"
#include "sim/engine/fabric_graph.hpp"
#include "sim/scenario/scenario.hpp"
#include "sim/steps/synchronous_step.hpp"

namespace ganymede::rehearsal {

struct StepPlan {
  calibration::StepModel model;  ///< of each worker
  sim::Topology topology;
  std::vector<sim::Schedule> schedules;  ///< by bucket
  sim::SynchronousOptions options;
  std::uint64_t seed = 0;

  /// Which recorded step each rank repeats in each of the first `steps` steps.
  std::vector<std::vector<std::size_t>> rows(std::size_t steps) const;
};

/// The fabric of the pool that the scenario rents.
sim::FabricGraph fabric_of(const sim::Scenario& scenario);

/// Plans the steps of `nodes` nodes of one of the scenario's pools; every duration is `scale` times as long as in the
/// scenario. One worker alone reduces nothing. Throws as below.
StepPlan plan_steps(const sim::Scenario& scenario, std::size_t pool, int nodes, const sim::Topology& topology,
                    double scale);

/// Plans the steps of the nodes that the scenario asks for; every duration is `scale` times as long as in the scenario.
/// Throws ConfigError, located in the scenario, for what is not rehearsed: several pools, other modes than all-reduce,
/// growing models, backup workers, one host process for several workers.
StepPlan plan_steps(const sim::Scenario& scenario, const sim::Topology& topology, double scale);

/// The simulator's steps for these rows, on that fabric.
std::vector<sim::StepOutcome> predict_steps(const StepPlan& plan, const sim::FabricGraph& fabric,
                                            const std::vector<std::vector<std::size_t>>& rows);

}  // namespace ganymede::rehearsal
