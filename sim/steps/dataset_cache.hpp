#pragma once
// How large the dataset is, and whether it stays in the hosts' memory after the first epoch.

#include "sim/scenario/scenario.hpp"

namespace ganymede::sim {

/// Returns the bytes of the dataset as it is stored.
double dataset_bytes(const Scenario& scenario);
/// Returns the size of the dataset divided by the memory that a cache may use, on the host with the least memory of all
/// pools; above 1 the dataset does not fit. 0: nothing is cached in memory, or no platform states its hosts' memory.
double cache_share(const Scenario& scenario);
/// Returns whether the dataset fits in the cache that the scenario names, if the job may use the share `memory` (0 to
/// 1) of the hosts' memory. A cache on disk is taken to be large enough.
bool fits_cache(const Scenario& scenario, double memory = 1);

}  // namespace ganymede::sim
