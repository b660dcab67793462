#pragma once
// A run as a policy sees it.

#include "sim/run/run_state.hpp"

namespace ganymede::sim {

/// Returns only what the controller of a real run could see: no stage lengths, no future prices or capacity.
policies::Observation observe(const RunContext& context, const RunState& state);

}  // namespace ganymede::sim
