#include <algorithm>

#include "policies/choices.hpp"

namespace ganymede {

// settings: patience, retry
Decision decide_spot_first(const PolicyCall& call) {
  const Observation& seen = call.seen;
  const int nodes = asked_nodes(seen);
  const int spot = cheapest(seen, true);
  const int sure = cheapest(seen, false);
  if (spot < 0) return all_in(seen, sure, nodes);
  if (sure < 0) return all_in(seen, spot, nodes);
  const PoolView& pool = seen.pools[static_cast<std::size_t>(spot)];
  Decision decision = all_in(seen, spot, nodes);
  // A request that was not met in time is met on demand; spot is asked again after a while.
  const auto fell_back = call.memory.find("fell_back_at");
  const bool waited = pool.waiting > 0 && pool.refused_for.si > call.settings[0];
  if (waited && fell_back == call.memory.end()) call.memory["fell_back_at"] = seen.now.si;
  const auto since = call.memory.find("fell_back_at");
  if (since == call.memory.end()) return decision;
  if (seen.now.si - since->second > call.settings[1] && pool.waiting == 0) {
    call.memory.erase(since);
    return decision;
  }
  const int have = std::min(nodes, pool.held());
  // One request stays open, so that spot capacity is noticed when it comes back.
  decision.nodes[static_cast<std::size_t>(spot)] = std::min(nodes, have + 1);
  decision.nodes[static_cast<std::size_t>(sure)] = nodes - have;
  if (have == nodes) call.memory.erase("fell_back_at");
  return decision;
}

}  // namespace ganymede
