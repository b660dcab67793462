#pragma once
// Whether the dataset stays in the hosts' memory after the first epoch.

#include "sim/scenario/scenario.hpp"

namespace ganymede::sim {

/// Share of the memory that a cache may take which the dataset needs, on the host that has the least; above 1 it does
/// not fit. 0: nothing is cached in memory, or no platform states its hosts' memory.
double cache_share(const Scenario& scenario);
/// Whether the dataset fits in the cache that the scenario names, if the job may use that share of the hosts' memory.
bool fits_cache(const Scenario& scenario, double memory = 1);

}  // namespace ganymede::sim
