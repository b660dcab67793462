#include <algorithm>

#include "policies/policy_helpers.hpp"

namespace ganymede::policies {
namespace {

constexpr PolicySetting kUniformProgressSettings[] = {kMarginSetting};

/// Seconds that the rest may take on `nodes` on-demand nodes, margin included; 0 before a rate is known. If only some
/// spot nodes train, their rate is scaled to `nodes`.
double forecast_seconds(const PolicyCall& call, const PoolView& on_demand, int nodes) {
  const double gpus = std::min(nodes, on_demand.most) * on_demand.gpus_per_node;
  const double rate = predicted_rate(call.memory, gpus);
  return rate > 0 ? predicted_seconds(call, gpus) * growth(call, rate) * (1 + call.settings[0]) : 0;
}

// Wu et al., "Can't Be Late: Optimizing Spot Instance Savings under Deadlines", NSDI 2024. Even progress is a straight
// line from no work done at the start to all of it at the deadline. The policy trains on spot while it is ahead of that
// line, always leaves enough time to finish on demand, and does not alternate between the two.
Decision decide_uniform_progress(const PolicyCall& call) {
  const Observation& observation = call.observation;
  learn_rate(observation, call.memory);
  const int nodes = total_requested_nodes(observation);
  const int spot = cheapest_pool(observation, true);
  const int sure = cheapest_pool(observation, false);
  if (spot < 0 || !observation.deadline) return rent_in_one_pool(observation, spot < 0 ? sure : spot, nodes);
  if (sure < 0) return rent_in_one_pool(observation, spot, nodes);
  const double change = (observation.restart + observation.boot).si;  // the paper's changeover delay
  const PoolView& on_spot = observation.pools[static_cast<std::size_t>(spot)];
  const PoolView& on_demand = observation.pools[static_cast<std::size_t>(sure)];

  // The safety net: from now on only on-demand nodes are rented. It is lifted only if the forecast was so pessimistic
  // that there is time to change to spot and back.
  const double needed = forecast_seconds(call, on_demand, nodes);
  const double slack = observation.deadline->si - observation.now.si - needed - 2 * change - observation.every.si;
  if (needed > 0 && slack <= 0) call.memory["net"] = 1;
  if (slack > 2 * change) call.memory.erase("net");
  if (call.memory.contains("net")) {
    Decision decision = rent_in_one_pool(observation, sure, nodes);
    // Spot nodes go on training until those on demand are ready.
    if (on_demand.ready < std::min(nodes, on_demand.most))
      decision.nodes[static_cast<std::size_t>(spot)] = on_spot.ready;
    return decision;
  }
  // Available spot nodes are always used.
  Decision decision = rent_in_one_pool(observation, spot, nodes);
  if (on_spot.held() >= std::min(nodes, on_spot.most)) return decision;
  // On-demand nodes take the place of refused spot nodes while progress is behind. Once there are some, they stay until
  // the lead over even progress covers the changes back to spot and to on demand again.
  const bool spot_refused = on_spot.waiting > 0 && on_spot.refused_for.si > 60;
  const double all = observation.done + observation.left;
  const double done = all > 0 ? observation.done / all : 1;
  const double lead = done - observation.now.si / observation.deadline->si;
  const double way_back = 2 * change / observation.deadline->si;
  if (!(spot_refused && lead < 0) && !(on_demand.held() > 0 && lead < way_back)) return decision;
  const int missing = nodes - on_spot.held();
  decision.nodes[static_cast<std::size_t>(sure)] = std::min(missing, on_demand.most);
  decision.nodes[static_cast<std::size_t>(spot)] =
      on_spot.held() + 1;  // one request stays open, so that returning capacity is noticed
  return decision;
}

}  // namespace

Policy uniform_progress_policy() {
  return {.name = "uniform-progress",
          .summary = "spot while ahead of even progress towards the deadline, else on demand",
          .source = "Wu et al., Can't Be Late, NSDI 2024",
          .settings = kUniformProgressSettings,
          .other_market = true,
          .needs_deadline = true,
          .decide = decide_uniform_progress};
}

}  // namespace ganymede::policies
