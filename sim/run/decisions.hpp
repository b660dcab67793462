#pragma once
// A run as its policy sees it, and what becomes of the policy's decisions.

#include <vector>

#include "sim/run/run_state.hpp"

namespace ganymede::sim {

/// Requests the nodes that `decision` wants and that are missing, and releases surplus nodes. If members are released,
/// training stops and the remaining members start again; if no member remains, a checkpoint is written first to keep
/// the weights. Nodes that could join are left to adapt_training(). While a checkpoint is being written, the decision
/// is only stored.
void follow_decision(const RunContext& context, RunState& state, Actions& actions, const policies::Decision& decision);

/// The median time that a start of the training program takes on so many nodes of each pool.
Seconds program_start(const Scenario& scenario, const std::vector<int>& nodes);
/// The longest that it takes on these nodes, or on as many of a single pool as the scenario allows.
Seconds longest_program_start(const Scenario& scenario, const std::vector<int>& nodes);

/// Returns only what the controller of a real run could see: no stage lengths, no future prices or capacity.
policies::Observation observe(const RunContext& context, const RunState& state);

}  // namespace ganymede::sim
