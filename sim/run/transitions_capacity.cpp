// Capacity that comes and goes, as recorded or as drawn by the model of spot capacity. Both say when nodes are gone;
// their notice comes before that. So the simulated provider looks ahead by the length of the notice, and the policy
// hears only of the notices.

#include <algorithm>

#include "sim/run/node_supply.hpp"
#include "sim/run/transitions.hpp"

namespace ganymede::sim {
namespace {

/// Gives notice to nodes for which known capacity leaves no room; they go when capacity falls. Returns true if there is
/// a notice that the policy has not heard of.
bool reclaim_excess(const RunContext& context, RunState& state, Actions& actions, std::size_t p) {
  bool news = false;
  for (const CapacityFrom& change : known_capacity(context, state, p)) {
    if (static_cast<std::size_t>(state.fleet.held(p)) <= change.nodes) continue;
    // Nodes that have notice for a later time are taken before nodes without notice.
    std::vector<std::size_t> told, others;
    for (const std::size_t index : state.fleet.alive()) {
      const Node& node = state.fleet[index];
      if (node.pool == p && node.held() && node.leaves > change.at) (node.noticed ? told : others).push_back(index);
    }
    while (told.size() + others.size() > change.nodes) {
      std::vector<std::size_t>& from = told.empty() ? others : told;
      const auto pick = from.begin() + static_cast<std::ptrdiff_t>(state.picks.below(from.size()));
      news = announce_reclaim(context, state, actions, *pick, change.at) || news;
      from.erase(pick);
    }
  }
  return news;
}

}  // namespace

Actions transition(const RunContext& context, RunState& state, const CapacityChanged& event) {
  Actions actions;
  schedule_capacity_change(context, state, actions, event.pool);
  actions.consult_policy = reclaim_excess(context, state, actions, event.pool);
  actions.next.push_back(WaitingRetried{event.pool});
  return actions;
}

Actions transition(const RunContext& context, RunState& state, const ReclaimDue& event) {
  Actions actions;
  actions.consult_policy = reclaim_excess(context, state, actions, event.pool);
  return actions;
}

}  // namespace ganymede::sim
