#include <algorithm>

#include "policies/policy_helpers.hpp"

namespace ganymede::policies {
namespace {

constexpr PolicySetting kSpotFirstSettings[] = {
    {"patience_s", 300, 0, 1e9, "seconds after which a spot request counts as refused"},
    {"retry_s", 3600, 0, 1e9, "seconds until spot alone is asked again"}};

// Asks for spot nodes. When a request has waited for longer than `patience_s`, the missing nodes are rented on demand.
// When `retry_s` seconds have passed and no spot request waits, only spot nodes are asked for again.
Decision decide_spot_first(const PolicyCall& call) {
  const Observation& observation = call.observation;
  const int nodes = total_requested_nodes(observation);
  const int spot = cheapest_pool(observation, true);
  const int on_demand = cheapest_pool(observation, false);
  if (spot < 0) return rent_in_one_pool(observation, on_demand, nodes);
  if (on_demand < 0) return rent_in_one_pool(observation, spot, nodes);
  const PoolView& pool = observation.pools[static_cast<std::size_t>(spot)];
  Decision decision = rent_in_one_pool(observation, spot, nodes);
  const auto fell_back = call.memory.find("fell_back_at");
  const bool waited = pool.waiting > 0 && pool.refused_for.si > call.settings[0];
  if (waited && fell_back == call.memory.end()) call.memory["fell_back_at"] = observation.now.si;
  const auto since = call.memory.find("fell_back_at");
  if (since == call.memory.end()) return decision;
  if (observation.now.si - since->second > call.settings[1] && pool.waiting == 0) {
    call.memory.erase(since);
    return decision;
  }
  const int have = std::min(nodes, pool.held());
  // One spot request stays open, so that returning capacity is noticed. Neither pool is asked for more than it may
  // hold.
  decision.nodes[static_cast<std::size_t>(spot)] = std::min({nodes, have + 1, pool.most});
  decision.nodes[static_cast<std::size_t>(on_demand)] =
      std::min(nodes - have, observation.pools[static_cast<std::size_t>(on_demand)].most);
  if (have == nodes) call.memory.erase("fell_back_at");
  return decision;
}

}  // namespace

Policy spot_first_policy() {
  return {.name = "spot-first",
          .summary = "spot nodes, and on-demand ones for what spot does not give",
          .source = "common practice",
          .settings = kSpotFirstSettings,
          .other_market = true,
          .price_blind = true,
          .plan_default = true,
          .spot_only = true,
          .decide = decide_spot_first};
}

}  // namespace ganymede::policies
