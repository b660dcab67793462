#include <algorithm>
#include <limits>

#include "policies/policy_helpers.hpp"

namespace ganymede::policies {
namespace {

constexpr PolicySetting kCarbonAwareSettings[] = {
    {"saving", 0.1, 0, 0.99, "share of the rest's emissions that a move must save"},
    {"pause_above", 0, 0, 1e6, "g/kWh above which it waits if the deadline allows; 0: never"}};

// Rents all nodes in the pool where the work causes the least emissions. A move must save at least the share `saving`
// of them. While the cleanest pool is above `pause_above` and the deadline leaves time, nothing is rented.
Decision decide_carbon_aware(const PolicyCall& call) {
  const Observation& observation = call.observation;
  learn_rate(observation, call.memory);
  const int nodes = total_requested_nodes(observation);
  const std::size_t now = current_pool(observation);
  const bool started = observation.pools[now].held() + observation.pools[now].waiting > 0;
  std::size_t best = now;
  double cleanest = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < observation.pools.size(); ++i) {
    const PoolView& pool = observation.pools[i];
    if (!pool.g_per_kwh || is_refusing(pool) || pool.most < 1) continue;
    double grams = *pool.g_per_kwh * std::max(1.0, pool.gpu_watts) / pool.speed;
    if (started && i != now) grams /= 1 - call.settings[0];
    if (grams < cleanest) best = i, cleanest = grams;
  }
  Decision decision = rent_in_one_pool(observation, static_cast<int>(best), nodes);
  const double threshold = call.settings[1];
  if (threshold > 0 && observation.pools[best].g_per_kwh && *observation.pools[best].g_per_kwh > threshold &&
      observation.deadline) {
    // The prediction is for all nodes that are asked for, even if fewer train now.
    const double need = predicted_seconds(call, nodes * observation.pools[now].gpus_per_node);
    const double slack = (*observation.deadline - observation.now - observation.every - observation.save).si - need -
                         2 * (observation.restart + observation.boot).si;
    if (slack > 0.1 * need) std::fill(decision.nodes.begin(), decision.nodes.end(), 0);
  }
  return decision;
}

}  // namespace

Policy carbon_aware_policy() {
  return {.name = "carbon-aware",
          .summary = "where a kWh is cleanest, and later if the deadline allows",
          .source = "after Let's Wait Awhile (Wiesner et al., Middleware 2021)",
          .settings = kCarbonAwareSettings,
          .other_regions = true,
          .decide = decide_carbon_aware};
}

}  // namespace ganymede::policies
