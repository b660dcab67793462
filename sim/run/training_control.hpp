#pragma once
// Starts, ends and pauses of training. These are the parts of which transitions are made.

#include <vector>

#include "sim/run/run_state.hpp"

namespace ganymede::sim {

/// Begins a segment with the members and conditions of now. `same_workers`: those that trained before go on, and finish
/// a checkpoint that they were writing. ConfigError if the run would outlast its clock.
void begin_segment(const RunContext& context, RunState& state, Actions& actions, bool same_workers = false);

/// Ends the segment under way, after which nothing trains. `lost`: work that is not durable is lost.
void end_segment(const RunContext& context, RunState& state, Actions& actions, bool lost);

/// Steps are slower or faster from now on. Does nothing unless a segment is under way.
void change_pace(const RunContext& context, RunState& state, Actions& actions);

/// Nothing trains for `length`, while the run is `phase`: starting or saving.
void begin_pause(RunState& state, Actions& actions, RunPhase phase, Nanoseconds length);

/// Starts the training program on the nodes of choose_workers, of which there must be one. `load`: they read the last
/// checkpoint. Infeasible if start after start is lost before anything is durable.
void start_training(const RunContext& context, RunState& state, Actions& actions, bool load);

/// The pause before training is over.
void begin_training(const RunContext& context, RunState& state, Actions& actions);

/// Indices of the nodes that would train now: of each pool as many ready nodes as the policy wants. While these are too
/// few, nodes under notice fill up, of whatever pool: the policy may already have turned to another.
std::vector<std::size_t> choose_workers(const RunState& state);

/// Starts, resizes or stops training so that it fits the ready nodes and the policy's decision. Nothing is resized
/// while nodes are on their way.
void adapt_training(const RunContext& context, RunState& state, Actions& actions);

/// The run has reached its target.
void finish_run(RunState& state, Actions& actions);

}  // namespace ganymede::sim
