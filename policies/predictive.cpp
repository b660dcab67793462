#include "policies/policy_helpers.hpp"

namespace ganymede::policies {
namespace {

constexpr PolicySetting kPredictiveSettings[] = {
    {"usd_per_hour_waited", 5, 0, 1e9, "what an hour of waiting for the result is worth"}};

// Tries each number of nodes of the first pool and takes the one with which the rest of the training is predicted to
// cost least. An hour of waiting counts as `usd_per_hour_waited` dollars.
Decision decide_predictive(const PolicyCall& call) {
  const Observation& observation = call.observation;
  learn_rate(observation, call.memory);
  const int now = first_pool_nodes(observation);
  if (is_unsettled(observation)) return resize_first_pool(observation, now);
  const PoolView& pool = observation.pools[0];
  int best = now;
  double best_cost = 0;
  for (int nodes = 1; nodes <= pool.most; ++nodes) {
    const double hours = seconds_left(observation, predicted_rate(call.memory, nodes * pool.gpus_per_node)) / 3600;
    const double pause = nodes == now ? 0 : (observation.restart.si + (nodes > now ? observation.boot.si : 0)) / 3600;
    const double cost = (hours + pause) * (nodes * pool.usd_per_hour + call.settings[0]);
    if (nodes == 1 || cost < best_cost) best = nodes, best_cost = cost;
  }
  // A change must promise to save more than 5 %, because the prediction may be wrong by as much.
  const double stay = seconds_left(observation, observation.rate) / 3600 * (now * pool.usd_per_hour + call.settings[0]);
  if (best_cost > 0.95 * stay) best = now;
  return resize_and_remember(call, best);
}

}  // namespace

Policy predictive_policy() {
  return {.name = "predictive",
          .summary = "fits speed against GPUs while it runs and takes the cheapest predicted rest",
          .source = "after Optimus (Peng et al., EuroSys 2018) and Pollux (Qiao et al., OSDI 2021)",
          .settings = kPredictiveSettings,
          .decide = decide_predictive};
}

}  // namespace ganymede::policies
