#include "policies/choices.hpp"

#include <algorithm>

namespace ganymede {

int asked_nodes(const Observation& seen) {
  int nodes = 0;
  for (const PoolView& pool : seen.pools) nodes += pool.requested;
  return std::max(1, nodes);
}

Decision all_in(const Observation& seen, int pool, int nodes) {
  Decision decision{.nodes = std::vector<int>(seen.pools.size(), 0)};
  if (pool >= 0)
    decision.nodes[static_cast<std::size_t>(pool)] = std::min(nodes, seen.pools[static_cast<std::size_t>(pool)].most);
  return decision;
}

int nodes_now(const Observation& seen) {
  const PoolView& pool = seen.pools[0];
  const int now = pool.held() + pool.waiting;
  return now > 0 ? now : pool.requested;
}

Decision with_first(const Observation& seen, int nodes) {
  Decision decision{.nodes = requested_nodes(seen)};
  decision.nodes[0] = std::clamp(nodes, 1, std::max(1, seen.pools[0].most));
  return decision;
}

Decision change(const PolicyCall& call, int nodes) {
  if (nodes != nodes_now(call.seen)) call.memory["changed_at"] = call.seen.now.si;
  return with_first(call.seen, nodes);
}

bool unsettled(const Observation& seen) {
  const PoolView& pool = seen.pools[0];
  return !seen.training || pool.starting + pool.waiting > 0 || seen.training_gpus != pool.ready * pool.gpus_per_node;
}

double useful(const Observation& seen) { return std::max(0.0, 1 - seen.exposed - seen.straggler - seen.input_stall); }

int cheapest(const Observation& seen, bool spot) {
  int best = -1;
  for (std::size_t i = 0; i < seen.pools.size(); ++i) {
    if ((seen.pools[i].market == Market::spot) != spot) continue;
    if (best < 0 || seen.pools[i].usd_per_hour < seen.pools[static_cast<std::size_t>(best)].usd_per_hour)
      best = static_cast<int>(i);
  }
  return best;
}

std::size_t place_now(const Observation& seen) {
  std::size_t best = 0;
  int most = 0;
  for (std::size_t i = 0; i < seen.pools.size(); ++i) {
    const int nodes = seen.pools[i].held() + seen.pools[i].waiting;
    if (nodes > most) best = i, most = nodes;
  }
  return best;
}

bool refused(const PoolView& pool) { return pool.waiting > 0 && pool.refused_for.si > 600; }

bool refuses(const PolicyCall& call, int pool) {
  constexpr double kRetry_s = 3600;
  if (refused(call.seen.pools[static_cast<std::size_t>(pool)])) call.memory["refused_at"] = call.seen.now.si;
  const auto at = call.memory.find("refused_at");
  return at != call.memory.end() && call.seen.now.si - at->second < kRetry_s;
}

}  // namespace ganymede
