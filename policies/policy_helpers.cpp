#include "policies/policy_helpers.hpp"

#include <algorithm>
#include <limits>

namespace ganymede::policies {

std::vector<int> requested_nodes(const Observation& observation) {
  std::vector<int> nodes;
  for (const PoolView& pool : observation.pools) nodes.push_back(pool.requested);
  return nodes;
}

std::vector<int> current_nodes(const Observation& observation) {
  std::vector<int> nodes;
  for (const PoolView& pool : observation.pools) nodes.push_back(pool.held() + pool.waiting);
  return nodes;
}

double seconds_left(const Observation& observation, double rate) {
  return rate > 0 ? observation.left / rate : std::numeric_limits<double>::infinity();
}

int total_requested_nodes(const Observation& observation) {
  int nodes = 0;
  for (const PoolView& pool : observation.pools) nodes += pool.requested;
  return std::max(1, nodes);
}

Decision rent_in_one_pool(const Observation& observation, int pool, int nodes) {
  Decision decision{.nodes = std::vector<int>(observation.pools.size(), 0)};
  if (pool >= 0)
    decision.nodes[static_cast<std::size_t>(pool)] =
        std::min(nodes, observation.pools[static_cast<std::size_t>(pool)].most);
  return decision;
}

int first_pool_nodes(const Observation& observation) {
  const PoolView& pool = observation.pools[0];
  const int now = pool.held() + pool.waiting;
  return now > 0 ? now : pool.requested;
}

Decision resize_first_pool(const Observation& observation, int nodes) {
  Decision decision{.nodes = requested_nodes(observation)};
  decision.nodes[0] = std::clamp(nodes, 1, std::max(1, observation.pools[0].most));
  return decision;
}

Decision resize_and_remember(const PolicyCall& call, int nodes) {
  if (nodes != first_pool_nodes(call.observation)) call.memory["changed_at"] = call.observation.now.si;
  return resize_first_pool(call.observation, nodes);
}

bool is_unsettled(const Observation& observation) {
  const PoolView& pool = observation.pools[0];
  return !observation.training || pool.starting + pool.waiting > 0 ||
         observation.training_gpus != pool.ready * pool.gpus_per_node;
}

double useful_share(const Observation& observation) {
  return std::max(0.0, 1 - observation.exposed - observation.straggler - observation.input_stall);
}

int cheapest_pool(const Observation& observation, bool spot) {
  int best = -1;
  for (std::size_t i = 0; i < observation.pools.size(); ++i) {
    if ((observation.pools[i].market == platforms::Market::spot) != spot) continue;
    if (best < 0 || observation.pools[i].usd_per_hour < observation.pools[static_cast<std::size_t>(best)].usd_per_hour)
      best = static_cast<int>(i);
  }
  return best;
}

std::size_t current_pool(const Observation& observation) {
  std::size_t best = 0;
  int most = 0;
  for (std::size_t i = 0; i < observation.pools.size(); ++i) {
    const int nodes = observation.pools[i].held() + observation.pools[i].waiting;
    if (nodes > most) best = i, most = nodes;
  }
  return best;
}

bool is_refusing(const PoolView& pool) { return pool.waiting > 0 && pool.refused_for.si > 600; }

bool refused_recently(const PolicyCall& call, int pool) {
  constexpr double kRetry_s = 3600;
  if (is_refusing(call.observation.pools[static_cast<std::size_t>(pool)]))
    call.memory["refused_at"] = call.observation.now.si;
  const auto at = call.memory.find("refused_at");
  return at != call.memory.end() && call.observation.now.si - at->second < kRetry_s;
}

}  // namespace ganymede::policies
