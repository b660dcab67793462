#pragma once
// What a policy sees about a run.

#include "sim/run/run_state.hpp"

namespace ganymede::sim {

/// Returns only what the controller of a real run could see: no stage lengths, no future prices or capacity.
policies::Observation observe(const RunContext& context, const RunState& state);

}  // namespace ganymede::sim
