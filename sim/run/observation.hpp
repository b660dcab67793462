#pragma once
// What a policy sees of a run.

#include "sim/run/run_state.hpp"

namespace ganymede::sim {

/// Nothing that the controller of a real run could not see: no stage lengths, no future prices or capacity.
policies::Observation observe(const RunContext& context, const RunState& state);

}  // namespace ganymede::sim
