#pragma once
// The transitions of a run: for each kind of event a function of the run's context, its state and the event. It changes
// the state and returns the actions to be done; it has no other effects, so that a test can call it with literals.

#include "sim/run/run_state.hpp"

namespace ganymede::sim {

// Nodes
Actions transition(const RunContext& context, RunState& state, const RequestAnswered& event);
Actions transition(const RunContext& context, RunState& state, const WaitingRetried& event);
Actions transition(const RunContext& context, RunState& state, const NodeReady& event);
Actions transition(const RunContext& context, RunState& state, const NoticeGiven& event);
Actions transition(const RunContext& context, RunState& state, const FinalCheckpointDue& event);
Actions transition(const RunContext& context, RunState& state, const NodeReclaimed& event);
Actions transition(const RunContext& context, RunState& state, const NodeCrashed& event);

// Capacity
Actions transition(const RunContext& context, RunState& state, const CapacityChanged& event);
Actions transition(const RunContext& context, RunState& state, const ReclaimDue& event);

// Training
Actions transition(const RunContext& context, RunState& state, const PauseEnded& event);
Actions transition(const RunContext& context, RunState& state, const SegmentCompleted& event);
Actions transition(const RunContext& context, RunState& state, const BurstCreditsUsedUp& event);

// Faults
Actions transition(const RunContext& context, RunState& state, const SlowdownStarted& event);
Actions transition(const RunContext& context, RunState& state, const SlowdownEnded& event);
Actions transition(const RunContext& context, RunState& state, const FaultInjected& event);
/// Schedules the scenario's faults and the changes of limited capacity at the start of a run.
Actions start_of_run(const RunContext& context, RunState& state);

// The policy
Actions transition(const RunContext& context, RunState& state, const PolicyReviewDue& event);
/// Follows a decision of the policy, whose numbers of nodes must be within the pools' limits.
Actions apply_decision(const RunContext& context, RunState& state, const policies::Decision& decision);

/// Calls the function above that belongs to the event's type.
Actions transition(const RunContext& context, RunState& state, const SimulationEvent& event);

}  // namespace ganymede::sim
