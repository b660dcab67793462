// Transitions in which the policy is consulted and its decisions are followed.

#include "sim/run/decisions.hpp"
#include "sim/run/training_control.hpp"
#include "sim/run/transitions.hpp"

namespace ganymede::sim {

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
