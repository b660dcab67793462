#pragma once
// One run from request to last step.

#include "calibration/workload_model.hpp"
#include "sim/run/result.hpp"
#include "sim/scenario/scenario.hpp"

namespace ganymede {

/// Simulates the run. What it learns of steps is kept for later runs of this process, which does not change their
/// results. Infeasible: the run never finishes; Failure: its policy failed.
Result simulate(const Scenario& scenario);

/// The same with the worker's step given instead of taken from the scenario's trace: for checks that fit on a part of
/// it.
Result simulate(const Scenario& scenario, const WorkloadModel& workload);

}  // namespace ganymede
