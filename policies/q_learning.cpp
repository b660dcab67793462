#include <algorithm>

#include "policies/choices.hpp"

namespace ganymede {

std::string q_state(const Observation& seen) {
  const auto bucket = [](double share) { return std::clamp(static_cast<int>(share * 5), 0, 4); };
  int doublings = 0;
  for (int nodes = nodes_now(seen); nodes > 1; nodes /= 2) ++doublings;
  const bool at_most = nodes_now(seen) >= seen.pools[0].most;
  // What is left, in restarts: late changes are not earned back.
  const double left = time_left(seen, seen.rate);
  const double restarts = left / std::max(1.0, (seen.restart + seen.boot).si);
  const int horizon = restarts < 3 ? 0 : restarts < 30 ? 1 : 2;
  return "useful" + std::to_string(bucket(useful(seen))) + "/nodes2^" + std::to_string(doublings) +
         (at_most ? "max" : "") + "/left" + std::to_string(horizon);
}

int q_nodes(const Observation& seen, std::size_t action) {
  const int now = nodes_now(seen);
  const int most = std::max(1, seen.pools[0].most);
  return action == 0 ? std::max(1, now / 2) : action == 1 ? now : std::min(most, now * 2);
}

// settings: explore
Decision decide_q_learning(const PolicyCall& call) {
  const Observation& seen = call.seen;
  if (unsettled(seen)) return with_first(seen, nodes_now(seen));
  if (call.settings[0] > 0 && call.random.uniform() < call.settings[0])
    return with_first(seen, q_nodes(seen, call.random.below(kQActions)));
  const auto row = call.table->find(q_state(seen));
  // What was never seen in training is left as it is.
  if (row == call.table->end()) return with_first(seen, nodes_now(seen));
  std::size_t best = 1;
  for (std::size_t action = 0; action < kQActions; ++action)
    if (row->second[action] > row->second[best]) best = action;
  return with_first(seen, q_nodes(seen, best));
}

}  // namespace ganymede
