#include <limits>

#include "policies/policy_helpers.hpp"

namespace ganymede::policies {
namespace {

constexpr PolicySetting kCheapestRegionSettings[] = {
    {"saving", 0.1, 0, 0.99, "share of the rest's cost that a move must save"}};

// Rents all nodes in the pool where the rest of the training costs least. A move costs the time of a restart and the
// transfer of the data, and must save at least the share `saving` of the remaining cost.
Decision decide_cheapest_region(const PolicyCall& call) {
  const Observation& observation = call.observation;
  learn_rate(observation, call.memory);
  const int nodes = total_requested_nodes(observation);
  const std::size_t now = current_pool(observation);
  const bool started = observation.pools[now].held() + observation.pools[now].waiting > 0;
  // The prediction is for all nodes that are asked for, even if fewer train now.
  const double rate = predicted_rate(call.memory, nodes * observation.pools[now].gpus_per_node);
  const double hours = rate > 0 ? seconds_left(observation, rate) / 3600 : 1;
  const double moving = (observation.restart + observation.boot).si / 3600;
  std::size_t best = now;
  double best_usd = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < observation.pools.size(); ++i) {
    const PoolView& pool = observation.pools[i];
    if (is_refusing(pool) || pool.most < 1) continue;
    const bool stay = started && i == now;
    double usd = (hours / pool.speed + (stay || !started ? 0 : moving)) * nodes * pool.usd_per_hour;
    if (!stay) usd += pool.usd_to_enter;
    // Moving must save more than it may turn out to cost.
    if (started && !stay) usd /= 1 - call.settings[0];
    if (usd < best_usd) best = i, best_usd = usd;
  }
  return rent_in_one_pool(observation, static_cast<int>(best), nodes);
}

}  // namespace

Policy cheapest_region_policy() {
  return {.name = "cheapest-region",
          .summary = "where the rest costs least, moving the data counted",
          .source = "after SkyPilot (Yang et al., NSDI 2023)",
          .settings = kCheapestRegionSettings,
          .other_regions = true,
          .decide = decide_cheapest_region};
}

}  // namespace ganymede::policies
