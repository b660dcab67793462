#pragma once
// The same scenario with several seeds, for what one run cannot show: how the luck of a spot market or of faults
// varies.

#include "sim/run/simulate.hpp"

namespace ganymede::sim {

/// True if faults, lifetimes of nodes or spot capacity are drawn at random, so that runs of other seeds differ.
bool has_chances(const Scenario& scenario);

/// How many seeds are simulated if nobody says: 20 if runs of other seeds differ, otherwise 1. Message by message only
/// one, because such runs take long.
int default_seeds(const Scenario& scenario);

/// Simulates the run of the scenario's own seed. With `count` above 1, `seeds` of the result summarizes the runs of
/// this seed and the next `count` - 1. Throws Infeasible if the run of the own seed never finishes; runs of other seeds
/// that never finish are only counted.
Result simulate_seeds(const Scenario& scenario, int count);

}  // namespace ganymede::sim
