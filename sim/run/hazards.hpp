#pragma once
// Random times of a run: delays, lifetimes of nodes, and how often nodes are lost. Each use draws from a random stream
// of its own, so that one node more or less does not change the draws of the others.

#include "common/random.hpp"
#include "platforms/platform.hpp"
#include "platforms/spot.hpp"
#include "sim/run/run_clock.hpp"
#include "sim/scenario/scenario.hpp"

namespace ganymede::sim {

/// Draws the length of a delay: log-normal around its median, or exactly the median if it has no spread.
Nanoseconds draw(const platforms::Delay& delay, RandomStream& random);

/// Draws the time from a node's grant to its end; kNever beyond 285 years.
Nanoseconds draw(const Lifetimes& lifetimes, RandomStream& random);

/// The zone of a pool of modelled spot capacity: the zone of its preset, or one that the scenario's seed draws.
platforms::SpotZone spot_zone(const Scenario& scenario, const ScenarioPool& pool);

/// Mean losses of one node per second: by crashes, and by the lifetimes, the recording or the modelled capacity of its
/// pool. 0 if it is never lost.
double hazard_rate(const Scenario& scenario, const ScenarioPool& pool);

}  // namespace ganymede::sim
