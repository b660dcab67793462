#pragma once
// One run from the request for nodes to its last step, and its result.

#include "calibration/workload_model.hpp"
#include "sim/run/result.hpp"
#include "sim/run/run_simulation.hpp"
#include "sim/scenario/scenario.hpp"
#include "sim/steps/step_distribution_cache.hpp"

namespace ganymede::sim {

/// Simulates the run. Step distributions are kept in `cache` for later runs, whose results they do not change. Throws
/// Infeasible if the run never finishes, and Failure if its policy failed. Without `intervals` those of the result say
/// nothing, and all else is the same; it takes less time.
Result simulate(const Scenario& scenario, StepDistributionCache& cache, bool intervals = true);
/// The same without intervals; none if `gives_up` ended the run.
std::optional<Result> simulate_unless(const GivesUp& gives_up, const Scenario& scenario, StepDistributionCache& cache);
/// The same as simulate() with a cache of its own, for a single run.
Result simulate(const Scenario& scenario);

/// The same with `workload` as the worker's step instead of that of the scenario's trace, for checks that fit it to a
/// part of the trace.
Result simulate(const Scenario& scenario, const calibration::WorkloadModel& workload);

// The same scenario with several seeds, for what one run cannot show: how the luck of a spot market or of faults
// varies.

/// True if faults, lifetimes of nodes or spot capacity are drawn at random, so that runs of other seeds differ.
bool has_chances(const Scenario& scenario);

/// How many seeds are simulated if nobody says: 20 if runs of other seeds differ, otherwise 1. Message by message only
/// one, because such runs take long.
int default_seeds(const Scenario& scenario);

/// Simulates the run of the scenario's own seed. With `count` above 1, `seeds` of the result summarizes the runs of
/// this seed and the next `count` - 1. Throws Infeasible if the run of the own seed never finishes; runs of other seeds
/// that never finish are only counted.
Result simulate_seeds(const Scenario& scenario, int count);

}  // namespace ganymede::sim
