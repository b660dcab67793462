#pragma once
// A run's state decides about its training: the configuration, the stage, and times of checkpoints.

#include "sim/run/run_state.hpp"

namespace ganymede::sim {

/// The difference from a target that counts as rounding, in the target's unit: a small part of a step of the workers
/// that train.
double target_rounding(const RunContext& context, const RunState& state);

/// Index of the stage that the run is in when `done` units of the target are done.
std::size_t stage_at(const RunContext& context, const RunState& state, double done);

/// The nodes that train now, and under which conditions.
Configuration configuration_of(const RunContext& context, const RunState& state);

/// Time to write a checkpoint at the storage's present rate; 0 without storage.
Nanoseconds checkpoint_write_time(const RunContext& context, const RunState& state);
/// Steps between two checkpoints, at least 1; 0: none are written.
double steps_between_checkpoints(const RunContext& context, const RunState& state, const StepDistribution& steps);

// The same rules for any training, a cluster's too.

/// Time to write a checkpoint if `share` of the storage's rate is left; 0 without storage.
Nanoseconds checkpoint_write_time(const Checkpoints& checkpoints, double share = 1);
/// Time to read a checkpoint at the storage's full rate; 0 without storage.
Nanoseconds checkpoint_read_time(const Checkpoints& checkpoints);
/// Steps between two checkpoints, each of which takes `write`, if a step takes `step`.
double steps_between_checkpoints(const Scenario& scenario, const StepDistribution& steps, Seconds step, Seconds write,
                                 double losses_per_s);

/// Steps from one evaluation to the next, at least 1. Precondition: the scenario has evaluations.
double steps_between_evaluations(const Scenario& scenario, const StepDistribution& steps);

/// Steps from the present to the end of the step after which the next evaluation is due; infinite: none is.
double steps_to_evaluation(const RunContext& context, const RunState& state, const StepDistribution& steps);

/// Bytes of the dataset and a checkpoint, which move to a pool that lacks them.
double bytes_to_enter(const Scenario& scenario);
/// Cost of moving the dataset and a checkpoint to a pool that lacks them, in dollars.
double usd_to_enter(const RunContext& context, const RunState& state, std::size_t pool);

}  // namespace ganymede::sim
