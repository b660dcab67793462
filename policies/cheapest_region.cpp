#include <limits>

#include "policies/choices.hpp"

namespace ganymede {

// settings: saving
Decision decide_cheapest_region(const PolicyCall& call) {
  const Observation& seen = call.seen;
  learn_rate(seen, call.memory);
  const int nodes = asked_nodes(seen);
  const std::size_t now = place_now(seen);
  const bool started = seen.pools[now].held() + seen.pools[now].waiting > 0;
  // The rate is that of all that is asked for, even if less of it trains now.
  const double rate = predicted_rate(seen, call.memory, nodes * seen.pools[now].gpus_per_node);
  const double hours = rate > 0 ? time_left(seen, rate) / 3600 : 1;
  const double moving = (seen.restart + seen.boot).si / 3600;
  std::size_t best = now;
  double best_usd = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < seen.pools.size(); ++i) {
    const PoolView& pool = seen.pools[i];
    if (refused(pool) || pool.most < 1) continue;
    const bool stay = started && i == now;
    double usd = (hours / pool.speed + (stay || !started ? 0 : moving)) * nodes * pool.usd_per_hour;
    if (!stay) usd += pool.usd_to_enter;
    // Moving must save more than it may turn out to cost.
    if (started && !stay) usd /= 1 - call.settings[0];
    if (usd < best_usd) best = i, best_usd = usd;
  }
  return all_in(seen, static_cast<int>(best), nodes);
}

}  // namespace ganymede
