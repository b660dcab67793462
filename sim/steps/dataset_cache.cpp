#include "sim/steps/dataset_cache.hpp"

#include <algorithm>

namespace ganymede::sim {
namespace {

/// Share of a host's memory that the operating system and the training program leave to a cache: an assumption.
constexpr double kCacheShare = 0.7;

}  // namespace

double dataset_bytes(const Scenario& scenario) {
  return static_cast<double>(scenario.dataset.images) * scenario.dataset.bytes_per_image * scenario.input.compressed;
}

double cache_share(const Scenario& scenario) {
  if (!scenario.input.storage || scenario.input.cache != InputPath::Cache::memory) return 0;
  const double bytes = dataset_bytes(scenario);
  double share = 0;
  for (const ScenarioPool& pool : scenario.pools)
    if (pool.instance().memory) share = std::max(share, bytes / (kCacheShare * pool.instance().memory->si));
  return share;
}

bool fits_cache(const Scenario& scenario, double memory) {
  if (scenario.input.cache == InputPath::Cache::none) return false;
  return cache_share(scenario) <= memory;
}

}  // namespace ganymede::sim
