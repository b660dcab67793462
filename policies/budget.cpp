#include "policies/choices.hpp"

namespace ganymede {

// The fastest allocation that the money reaches for to the end; the cheapest where none does.
// settings: margin
Decision decide_budget(const PolicyCall& call) {
  const Observation& seen = call.seen;
  learn_rate(seen, call.memory);
  const int sure = cheapest(seen, false);
  const int spot = cheapest(seen, true);
  const bool on_spot = spot >= 0 && (sure < 0 || !refuses(call, spot));
  const int first = on_spot ? spot : sure;
  if (!seen.budget_usd || !call.memory.contains("rate/rate")) return all_in(seen, first, asked_nodes(seen));
  const PoolView& pool = seen.pools[static_cast<std::size_t>(first)];
  const double money = *seen.budget_usd - seen.spent_usd;
  const int now = current_nodes(seen)[static_cast<std::size_t>(first)];
  int best = 1;
  double shortest = 0;
  for (int nodes = 1; nodes <= pool.most; ++nodes) {
    const double rate = predicted_rate(seen, call.memory, nodes * pool.gpus_per_node);
    const double seconds = time_left(seen, rate) + (nodes == now ? 0 : (seen.restart + seen.boot).si);
    const bool affordable = seconds / 3600 * nodes * pool.usd_per_hour * (1 + call.settings[0]) <= money;
    if (affordable && (shortest == 0 || seconds < 0.95 * shortest)) best = nodes, shortest = seconds;
  }
  return all_in(seen, first, best);
}

}  // namespace ganymede
