#pragma once
// What becomes of the policy's decisions.

#include "sim/run/run_state.hpp"

namespace ganymede::sim {

/// Requests the nodes that are missing from what `decision` wants, and releases those that are too many. Where members
/// go, training stops; the others start again, or a checkpoint keeps the weights first where nobody stays. Nodes that
/// could join are left to adapt_training. While a checkpoint is written the decision is only kept.
void follow_decision(const RunContext& context, RunState& state, Actions& actions, const policies::Decision& decision);

}  // namespace ganymede::sim
