#pragma once
// The same scenario with several seeds: what one run cannot say of a market that comes and goes.

#include "sim/run/simulate.hpp"

namespace ganymede {

/// Whether faults, lives of nodes or spot capacity are drawn, so that another seed has another fate.
bool has_chances(const Scenario& scenario);

/// The run of the scenario's seed, with what this and the next `count` - 1 seeds come to where count is above 1. Seeds
/// whose run never finishes are counted, the scenario's own throws Infeasible.
Result simulate_seeds(const Scenario& scenario, int count);

}  // namespace ganymede
