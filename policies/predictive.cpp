#include "policies/choices.hpp"

namespace ganymede {

// settings: usd_per_hour_waited
Decision decide_predictive(const PolicyCall& call) {
  const Observation& seen = call.seen;
  learn_rate(seen, call.memory);
  const int now = nodes_now(seen);
  if (unsettled(seen)) return with_first(seen, now);
  const PoolView& pool = seen.pools[0];
  int best = now;
  double best_cost = 0;
  for (int nodes = 1; nodes <= pool.most; ++nodes) {
    const double hours = time_left(seen, predicted_rate(seen, call.memory, nodes * pool.gpus_per_node)) / 3600;
    const double pause = nodes == now ? 0 : (seen.restart.si + (nodes > now ? seen.boot.si : 0)) / 3600;
    const double cost = (hours + pause) * (nodes * pool.usd_per_hour + call.settings[0]);
    if (nodes == 1 || cost < best_cost) best = nodes, best_cost = cost;
  }
  // The prediction must promise more than it is likely to be wrong by.
  const double stay = time_left(seen, seen.rate) / 3600 * (now * pool.usd_per_hour + call.settings[0]);
  if (best_cost > 0.95 * stay) best = now;
  return change(call, best);
}

}  // namespace ganymede
