#pragma once
// The same scenario with several seeds, for what one run cannot show: how the luck of a spot market or of faults
// varies.

#include "sim/run/simulate.hpp"

namespace ganymede::sim {

/// True if faults, lifetimes of nodes or spot capacity are drawn at random, so that runs of other seeds differ.
bool has_chances(const Scenario& scenario);

/// The run of the scenario's own seed. With `count` above 1, its `seeds` holds what the runs of this and the next
/// `count` - 1 seeds come to. Throws Infeasible if the own run never finishes; other seeds that do not are counted.
Result simulate_seeds(const Scenario& scenario, int count);

}  // namespace ganymede::sim
