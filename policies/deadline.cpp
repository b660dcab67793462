#include "policies/policy_helpers.hpp"

namespace ganymede::policies {
namespace {

constexpr PolicySetting kDeadlineSettings[] = {kMarginSetting};

// Rents the fewest nodes that meet the deadline by the measured rate, on spot while there is time to fall back to on
// demand.
Decision decide_deadline(const PolicyCall& call) {
  const Observation& observation = call.observation;
  learn_rate(observation, call.memory);
  const int sure = cheapest_pool(observation, false);
  const int spot = cheapest_pool(observation, true);
  if (!observation.deadline)
    return rent_in_one_pool(observation, sure < 0 ? spot : sure, total_requested_nodes(observation));
  const double left = observation.deadline->si - observation.now.si;
  const auto enough = [&](int pool, double pause) {
    const PoolView& view = observation.pools[static_cast<std::size_t>(pool)];
    for (int nodes = 1; nodes < view.most; ++nodes) {
      const double rate = predicted_rate(call.memory, nodes * view.gpus_per_node);
      if (rate > 0 && seconds_left(observation, rate) * (1 + call.settings[0]) + pause <= left) return nodes;
    }
    return view.most;
  };
  if (!call.memory.contains("rate/rate"))
    return rent_in_one_pool(observation, spot >= 0 ? spot : sure, total_requested_nodes(observation));
  const double change = (observation.restart + observation.boot).si;
  int pool = sure;
  // Spot is used only if there is time for one loss: its restart, and the work since the last durable checkpoint.
  if (spot >= 0 && !refused_recently(call, spot)) {
    const PoolView& view = observation.pools[static_cast<std::size_t>(spot)];
    const double rate = predicted_rate(call.memory, view.most * view.gpus_per_node);
    const double slack = left - seconds_left(observation, rate) * (1 + call.settings[0]);
    if (sure < 0 || slack > 3 * change + observation.since_durable.si) pool = spot;
  }
  if (pool < 0) pool = spot;
  const int now = current_nodes(observation)[static_cast<std::size_t>(pool)];
  const int need = enough(pool, change);
  // A few nodes too many are kept, because giving them back costs a restart; nodes are given back only if at most half
  // of them are needed.
  const bool keep = now > 0 && need <= now && need > now / 2;
  return rent_in_one_pool(observation, pool, keep ? now : need);
}

}  // namespace

Policy deadline_policy() {
  return {.name = "deadline",
          .summary = "the fewest nodes that meet the deadline, on spot while there is time to fall back",
          .source = "our own",
          .settings = kDeadlineSettings,
          .other_market = true,
          .needs_deadline = true,
          .decide = decide_deadline};
}

}  // namespace ganymede::policies
