#pragma once
// One run from request to last step.

#include "calibration/workload_model.hpp"
#include "sim/run/result.hpp"
#include "sim/scenario/scenario.hpp"
#include "sim/steps/step_distribution_cache.hpp"

namespace ganymede {

/// Simulates the run. What it learns of steps is kept in `cache` for later runs, whose results it does not change.
/// Infeasible: the run never finishes; Failure: its policy failed.
Result simulate(const Scenario& scenario, StepDistributionCache& cache);
/// The same for a single run.
Result simulate(const Scenario& scenario);

/// The same with the worker's step given instead of taken from the scenario's trace: for checks that fit on a part of
/// it.
Result simulate(const Scenario& scenario, const WorkloadModel& workload);

}  // namespace ganymede
