// Policies that change how many nodes of the first pool train, by what the run's monitoring says.

#include <algorithm>
#include <cmath>

#include "policies/policy.hpp"

namespace ganymede {
namespace {

/// Of the first pool, held or on their way; what is requested before there are any.
int nodes_now(const Observation& seen) {
  const PoolView& pool = seen.pools[0];
  const int now = pool.held() + pool.waiting;
  return now > 0 ? now : pool.requested;
}

Decision with_first(const Observation& seen, int nodes) {
  Decision decision{.nodes = requested_nodes(seen)};
  decision.nodes[0] = std::clamp(nodes, 1, std::max(1, seen.pools[0].most));
  return decision;
}

/// Something is still booting or awaited, or nothing is being trained: what was measured says nothing of the next
/// allocation.
bool unsettled(const Observation& seen) { return !seen.training || seen.pools[0].starting + seen.pools[0].waiting > 0; }

/// The share of the rented GPUs' time in which they do what the training needs. A step that is bound by input or
/// communication does not get faster with more GPUs.
double useful(const Observation& seen) { return std::max(0.0, 1 - seen.exposed - seen.straggler - seen.input_stall); }

/// Seconds between two changes, at least: what a change costs must be earned back.
bool too_early(const PolicyCall& call, double cooldown) {
  const auto last = call.memory.find("changed_at");
  return last != call.memory.end() && call.seen.now.si - last->second < cooldown;
}

Decision change(const PolicyCall& call, int nodes) {
  if (nodes != nodes_now(call.seen)) call.memory["changed_at"] = call.seen.now.si;
  return with_first(call.seen, nodes);
}

}  // namespace

// settings: low, high, cooldown
Decision decide_resource_aware(const PolicyCall& call) {
  const Observation& seen = call.seen;
  const int now = nodes_now(seen);
  if (unsettled(seen) || too_early(call, call.settings[2])) return with_first(seen, now);
  // A change that would not be earned back before the end is none.
  if (time_left(seen, seen.rate) < 10 * (seen.restart + seen.boot).si) return with_first(seen, now);
  if (useful(seen) < call.settings[0] && now > 1) return change(call, std::max(1, now / 2));
  if (useful(seen) > call.settings[1] && now < seen.pools[0].most)
    return change(call, std::min(seen.pools[0].most, now * 2));
  return with_first(seen, now);
}

// settings: usd_per_hour_waited
Decision decide_predictive(const PolicyCall& call) {
  const Observation& seen = call.seen;
  learn_rate(seen, call.memory);
  const int now = nodes_now(seen);
  if (unsettled(seen)) return with_first(seen, now);
  const PoolView& pool = seen.pools[0];
  int best = now;
  double best_cost = 0;
  for (int nodes = 1; nodes <= pool.most; ++nodes) {
    const double hours = time_left(seen, predicted_rate(seen, call.memory, nodes * pool.gpus_per_node)) / 3600;
    const double pause = nodes == now ? 0 : (seen.restart.si + (nodes > now ? seen.boot.si : 0)) / 3600;
    const double cost = (hours + pause) * (nodes * pool.usd_per_hour + call.settings[0]);
    if (nodes == 1 || cost < best_cost) best = nodes, best_cost = cost;
  }
  // The prediction must promise more than it is likely to be wrong by.
  const double stay = time_left(seen, seen.rate) / 3600 * (now * pool.usd_per_hour + call.settings[0]);
  if (best_cost > 0.95 * stay) best = now;
  return change(call, best);
}

// The first pool's nodes against what the metrics say: the horizontal autoscaler's rule on the share of useful GPU
// time, with the cluster autoscaler's delays.
// settings: target, tolerance, down_after
Decision decide_kubernetes_autoscaler(const PolicyCall& call) {
  const Observation& seen = call.seen;
  const int now = nodes_now(seen);
  if (unsettled(seen)) return with_first(seen, now);
  const double ratio = seen.gpu_busy / call.settings[0];
  int desired = now;
  if (std::abs(ratio - 1) > call.settings[1]) desired = static_cast<int>(std::ceil(now * ratio));
  desired = std::clamp(desired, 1, std::max(1, seen.pools[0].most));
  if (desired >= now) {
    call.memory.erase("low_since");
    return with_first(seen, desired);
  }
  // Fewer only after so long below: the stabilization window.
  const auto since = call.memory.try_emplace("low_since", seen.now.si).first;
  if (seen.now.si - since->second < call.settings[2]) return with_first(seen, now);
  call.memory.erase("low_since");
  return with_first(seen, desired);
}

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
