// Transitions in which pauses and segments end, and in which the policy's decisions are followed.

#include "sim/run/decisions.hpp"
#include "sim/run/run_configuration.hpp"
#include "sim/run/training_control.hpp"
#include "sim/run/transitions.hpp"

namespace ganymede::sim {
namespace {

bool target_reached(const RunContext& context, const RunState& state) {
  return state.training.done(state.now) >= context.target - target_rounding(context, state);
}

/// Goes on after a segment and the evaluation at its end: trains, writes the last checkpoint, or finishes the run.
void go_on_after_segment(const RunContext& context, RunState& state, Actions& actions) {
  if (!target_reached(context, state)) {
    begin_segment(context, state, actions, true);
  } else if (context.scenario.checkpoints.every != Checkpoints::Every::never) {
    begin_pause(state, actions, RunPhase::saving, checkpoint_write_time(context, state));
  } else {
    state.training.finish();
    finish_run(state, actions);
  }
}

void end_evaluation(const RunContext& context, RunState& state, Actions& actions) {
  log_event(actions, state, "evaluated");
  go_on_after_segment(context, state, actions);
  if (state.phase != RunPhase::training) return;
  // A decision of the policy, or a node that became ready, may have waited for the evaluation.
  follow_decision(context, state, actions, state.decision);
  adapt_training(context, state, actions);
}

}  // namespace

Actions transition(const RunContext& context, RunState& state, const PauseEnded&) {
  Actions actions;
  if (state.phase == RunPhase::starting) {
    begin_training(context, state, actions);
    return actions;
  }
  if (state.phase == RunPhase::evaluating) {
    end_evaluation(context, state, actions);
    return actions;
  }
  state.training.save();
  log_event(actions, state, "checkpoint");
  if (target_reached(context, state)) {
    finish_run(state, actions);
    return actions;
  }
  state.phase = RunPhase::idle;
  // A decision of the policy may have waited for the checkpoint.
  follow_decision(context, state, actions, state.decision);
  if (state.phase == RunPhase::idle) adapt_training(context, state, actions);
  return actions;
}

Actions transition(const RunContext& context, RunState& state, const SegmentCompleted&) {
  Actions actions;
  const int gpus = state.training.segment().steps->workers;
  end_segment(context, state, actions, false);
  if (state.evaluation_due)
    begin_pause(state, actions, RunPhase::evaluating, to_nanoseconds(context.scenario.evaluation->pause(gpus)));
  else
    go_on_after_segment(context, state, actions);
  return actions;
}

Actions transition(const RunContext& context, RunState& state, const BurstCreditsUsedUp& event) {
  Actions actions;
  (event.nics ? state.nic_credits_left : state.burst_credits_left) = false;
  log_event(actions, state, event.nics ? "network credits used up" : "burst credits used up");
  change_pace(context, state, actions);
  return actions;
}

Actions transition(const RunContext& context, RunState& state, const PolicyReviewDue&) {
  Actions actions;
  actions.schedule.push_back({state.now + to_nanoseconds(context.scenario.policy.every), PolicyReviewDue{}});
  actions.consult_policy = true;
  return actions;
}

Actions apply_decision(const RunContext& context, RunState& state, const policies::Decision& decision) {
  Actions actions;
  follow_decision(context, state, actions, decision);
  adapt_training(context, state, actions);
  return actions;
}

Actions transition(const RunContext& context, RunState& state, const SimulationEvent& event) {
  return std::visit([&](const auto& typed) { return transition(context, state, typed); }, event);
}

}  // namespace ganymede::sim
