#pragma once
// One run from the request for nodes to its last step, and its result.

#include "calibration/workload_model.hpp"
#include "sim/run/result.hpp"
#include "sim/scenario/scenario.hpp"
#include "sim/steps/step_distribution_cache.hpp"

namespace ganymede::sim {

/// Simulates the run. Step distributions are kept in `cache` for later runs, whose results they do not change. Throws
/// Infeasible if the run never finishes, and Failure if its policy failed.
Result simulate(const Scenario& scenario, StepDistributionCache& cache);
/// The same with a cache of its own, for a single run.
Result simulate(const Scenario& scenario);

/// The same with `workload` as the worker's step instead of that of the scenario's trace, for checks that fit it to a
/// part of the trace.
Result simulate(const Scenario& scenario, const calibration::WorkloadModel& workload);

}  // namespace ganymede::sim
