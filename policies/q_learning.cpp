#include "policies/q_learning.hpp"

#include <algorithm>

#include "policies/policy_helpers.hpp"

namespace ganymede::policies {
std::string q_state(const Observation& observation) {
  const auto bucket = [](double share) { return std::clamp(static_cast<int>(share * 5), 0, 4); };
  int doublings = 0;
  for (int nodes = first_pool_nodes(observation); nodes > 1; nodes /= 2) ++doublings;
  const bool at_most = first_pool_nodes(observation) >= observation.pools[0].most;
  // The rest of the training is measured in restarts, because a change near the end does not save what its restart
  // costs.
  const double left = seconds_left(observation, observation.rate);
  const double restarts = left / std::max(1.0, (observation.restart + observation.boot).si);
  const int horizon = restarts < 3 ? 0 : restarts < 30 ? 1 : 2;
  return "useful" + std::to_string(bucket(useful_share(observation))) + "/nodes2^" + std::to_string(doublings) +
         (at_most ? "max" : "") + "/left" + std::to_string(horizon);
}

int q_nodes(const Observation& observation, std::size_t action) {
  const int now = first_pool_nodes(observation);
  const int most = std::max(1, observation.pools[0].most);
  return action == 0 ? std::max(1, now / 2) : action == 1 ? now : std::min(most, now * 2);
}

namespace {

constexpr PolicySetting kQLearningSettings[] = {{"explore", 0, 0, 1, "share of random decisions, for training"}};

// Takes the action with the highest value in the table for the observed state; keeps the nodes if the table does not
// have that state.
Decision decide_q_learning(const PolicyCall& call) {
  const Observation& observation = call.observation;
  if (is_unsettled(observation)) return resize_first_pool(observation, first_pool_nodes(observation));
  if (call.settings[0] > 0 && call.random.uniform() < call.settings[0])
    return resize_first_pool(observation, q_nodes(observation, call.random.below(kQActions)));
  const auto row = call.table->find(q_state(observation));
  if (row == call.table->end()) return resize_first_pool(observation, first_pool_nodes(observation));
  std::size_t best = 1;
  for (std::size_t action = 0; action < kQActions; ++action)
    if (row->second[action] > row->second[best]) best = action;
  return resize_first_pool(observation, q_nodes(observation, best));
}

}  // namespace

Policy q_learning_policy() {
  return {.name = "q-learning",
          .summary = "halves, keeps or doubles the nodes by a table that `ganymede learn` trained",
          .source = "Watkins & Dayan, Machine Learning 8, 1992",
          .settings = kQLearningSettings,
          .learns = true,
          .decide = decide_q_learning};
}

}  // namespace ganymede::policies
