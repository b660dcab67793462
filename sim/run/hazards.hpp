#pragma once
// When things go wrong: times drawn from what a scenario states. Each draw has a random stream of its own, so that one
// node more or less changes nothing for the others.

#include "common/random.hpp"
#include "platforms/platform.hpp"
#include "platforms/spot.hpp"
#include "sim/run/run_clock.hpp"
#include "sim/scenario/scenario.hpp"

namespace ganymede {

/// A delay's length.
Nanoseconds draw(const Delay& delay, RandomStream& random);

/// How long a node lives from its grant.
Nanoseconds draw(const Lifetimes& lifetimes, RandomStream& random);

/// Where the nodes of a pool come from whose capacity is modelled: the preset's zone, or the one that the seed draws.
SpotZone spot_zone(const Scenario& scenario, const ScenarioPool& pool);

/// Losses of one node per second, on average: crashes, and lifetimes, a recording or the modelled capacity of its pool.
/// 0: none.
double hazard_rate(const Scenario& scenario, const ScenarioPool& pool);

}  // namespace ganymede
