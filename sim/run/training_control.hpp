#pragma once
// Starts, ends and pauses of training. Transitions are composed of these functions.

#include <vector>

#include "sim/run/run_state.hpp"

namespace ganymede::sim {

/// Begins a segment with the present members and conditions. `same_workers`: the workers that trained before go on, and
/// finish a checkpoint that they were writing. Throws ConfigError if the run would outlast its clock.
void begin_segment(const RunContext& context, RunState& state, Actions& actions, bool same_workers = false);

/// Ends the segment under way, after which nothing trains. `lost`: work that is not durable is lost.
void end_segment(const RunContext& context, RunState& state, Actions& actions, bool lost);

/// Continues with a new segment, because steps are slower or faster from now on. Does nothing unless a segment is under
/// way.
void change_pace(const RunContext& context, RunState& state, Actions& actions);

/// Begins a pause of `length` in which nothing trains; `phase` is starting, evaluating or saving.
void begin_pause(RunState& state, Actions& actions, RunPhase phase, Nanoseconds length);

/// Starts the training program on the nodes of choose_workers(), which must return at least one. `load`: they read the
/// last checkpoint. Throws Infeasible if too many successive starts made nothing durable.
void start_training(const RunContext& context, RunState& state, Actions& actions, bool load);

/// Begins training after the pause of the start.
void begin_training(const RunContext& context, RunState& state, Actions& actions);

/// Indices of the nodes that would train now: as many ready nodes of each pool as the policy wants. If these are too
/// few, nodes under notice of any pool are added, because the policy may already have turned to another pool.
std::vector<std::size_t> choose_workers(const RunState& state);

/// Starts, resizes or stops training so that it fits the ready nodes and the policy's decision. Nothing is resized
/// while nodes are on their way.
void adapt_training(const RunContext& context, RunState& state, Actions& actions);

/// Ends the run, which has reached its target.
void finish_run(RunState& state, Actions& actions);

}  // namespace ganymede::sim
