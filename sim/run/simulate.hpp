#pragma once
// One run from request to last step.

#include "calibration/workload_model.hpp"
#include "sim/run/result.hpp"
#include "sim/run/scenario.hpp"

namespace ganymede {

/// Simulates in this process, which may do so once (SimGrid allows one engine a process): call it in a child.
Result simulate(const Scenario& scenario);

/// The same with the worker's step given instead of taken from the scenario's trace: for checks that fit on a part of
/// it.
Result simulate(const Scenario& scenario, const WorkloadModel& workload);

}  // namespace ganymede
