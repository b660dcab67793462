#include <algorithm>
#include <limits>

#include "policies/choices.hpp"

namespace ganymede {

// Wait awhile or go elsewhere, as in Wiesner et al., "Let's Wait Awhile", Middleware 2021: to where a kWh is cleanest,
// and not at all while it is dirty and the deadline allows.
// settings: saving, pause_above
Decision decide_carbon_aware(const PolicyCall& call) {
  const Observation& seen = call.seen;
  learn_rate(seen, call.memory);
  const int nodes = asked_nodes(seen);
  const std::size_t now = place_now(seen);
  const bool started = seen.pools[now].held() + seen.pools[now].waiting > 0;
  std::size_t best = now;
  double cleanest = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < seen.pools.size(); ++i) {
    const PoolView& pool = seen.pools[i];
    if (!pool.g_per_kwh || refused(pool) || pool.most < 1) continue;
    double grams = *pool.g_per_kwh * std::max(1.0, pool.gpu_watts) / pool.speed;
    if (started && i != now) grams /= 1 - call.settings[0];
    if (grams < cleanest) best = i, cleanest = grams;
  }
  Decision decision = all_in(seen, static_cast<int>(best), nodes);
  const double threshold = call.settings[1];
  if (threshold > 0 && seen.pools[best].g_per_kwh && *seen.pools[best].g_per_kwh > threshold && seen.deadline) {
    // The rate is that of all that is asked for, even if less of it trains now.
    const double rate = predicted_rate(seen, call.memory, nodes * seen.pools[now].gpus_per_node);
    const double need = rate > 0 ? time_left(seen, rate) : 0;
    const double slack = seen.deadline->si - seen.now.si - need - 2 * (seen.restart + seen.boot).si;
    // Nothing is rented while it waits.
    if (need > 0 && slack > 0.1 * need) std::fill(decision.nodes.begin(), decision.nodes.end(), 0);
  }
  return decision;
}

}  // namespace ganymede
