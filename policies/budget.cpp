#include "policies/policy_helpers.hpp"

namespace ganymede::policies {
namespace {

constexpr PolicySetting kBudgetSettings[] = {kMarginSetting};

// Rents the fastest allocation that the rest of the budget pays for until the target is met, or a single node if it
// pays for none. More nodes are taken only if they save more than 5 % of the time.
Decision decide_budget(const PolicyCall& call) {
  const Observation& observation = call.observation;
  learn_rate(observation, call.memory);
  const int on_demand = cheapest_pool(observation, false);
  const int spot = cheapest_pool(observation, true);
  const bool on_spot = spot >= 0 && (on_demand < 0 || !refused_recently(call, spot));
  const int chosen = on_spot ? spot : on_demand;
  if (!observation.budget_usd || !call.memory.contains("rate/rate"))
    return rent_in_one_pool(observation, chosen, total_requested_nodes(observation));
  const PoolView& pool = observation.pools[static_cast<std::size_t>(chosen)];
  const double money = *observation.budget_usd - observation.spent_usd;
  const int now = current_nodes(observation)[static_cast<std::size_t>(chosen)];
  int best = 1;
  double shortest = 0;
  for (int nodes = 1; nodes <= pool.most; ++nodes) {
    const double seconds = predicted_seconds(call, nodes * pool.gpus_per_node) +
                           (nodes == now ? 0 : (observation.restart + observation.boot).si);
    const bool affordable = seconds / 3600 * nodes * pool.usd_per_hour * (1 + call.settings[0]) <= money;
    if (affordable && (shortest == 0 || seconds < 0.95 * shortest)) best = nodes, shortest = seconds;
  }
  return rent_in_one_pool(observation, chosen, best);
}

}  // namespace

Policy budget_policy() {
  return {.name = "budget",
          .summary = "the fastest allocation that the budget pays for to the end",
          .source = "our own",
          .settings = kBudgetSettings,
          .other_market = true,
          .needs_budget = true,
          .decide = decide_budget};
}

}  // namespace ganymede::policies
