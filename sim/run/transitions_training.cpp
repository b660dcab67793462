// Transitions in which pauses and segments end.

#include "sim/run/decisions.hpp"
#include "sim/run/run_configuration.hpp"
#include "sim/run/training_control.hpp"
#include "sim/run/transitions.hpp"

namespace ganymede::sim {
namespace {

bool target_reached(const RunContext& context, const RunState& state) {
  return state.training.done(state.now) >= context.target - target_rounding(context, state);
}

}  // namespace

Actions transition(const RunContext& context, RunState& state, const PauseEnded&) {
  Actions actions;
  if (state.phase == RunPhase::starting) {
    begin_training(context, state, actions);
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
  end_segment(context, state, actions, false);
  if (!target_reached(context, state)) {
    begin_segment(context, state, actions, true);
  } else if (context.scenario.checkpoints.every != Checkpoints::Every::never) {
    begin_pause(state, actions, RunPhase::saving, checkpoint_write_time(context, state));
  } else {
    state.training.finish();
    finish_run(state, actions);
  }
  return actions;
}

Actions transition(const RunContext& context, RunState& state, const BurstCreditsUsedUp&) {
  Actions actions;
  state.burst_credits_left = false;
  log_event(actions, state, "burst credits used up");
  change_pace(context, state, actions);
  return actions;
}

}  // namespace ganymede::sim
