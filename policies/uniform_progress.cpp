#include <algorithm>

#include "policies/choices.hpp"

namespace ganymede {
namespace {

/// A slope that was seen over less of the work than this is taken to be noise: as if it had taken so much.
constexpr double kLeastSeen = 0.1;

/// How long the rest may take with all that was asked for, on demand; 0 before a speed is known. Spot may be there in
/// part only, and what trains then says how fast all of it would be. That training has become slower before (a network
/// that grows, say) is all that is known of what is still to come: a unit's time may go on growing as steeply as it
/// has.
double forecast(const PolicyCall& call, const PoolView& on_demand, int nodes) {
  const double gpus = std::min(nodes, on_demand.most) * on_demand.gpus_per_node;
  const double rate = predicted_rate(call.seen, call.memory, gpus);
  if (rate <= 0) return 0;
  double& fastest = call.memory.try_emplace("fastest", rate).first->second;
  fastest = std::max(fastest, rate);
  const double done = call.seen.done / (call.seen.done + call.seen.left);
  const double slope = (1 - rate / fastest) / std::max(kLeastSeen, done);  // of a unit's time, in its time now
  return call.seen.left / rate * (1 + slope * (1 - done) / 2) * (1 + call.settings[0]);
}

/// The longest time so far between two looks: what is not seen now may not be seen before it has passed again.
double between_looks(const PolicyCall& call) {
  const double now = call.seen.now.si;
  double& last = call.memory.try_emplace("looked_at", now).first->second;
  double& longest = call.memory["between_looks"];
  longest = std::max(longest, now - last);
  last = now;
  return longest;
}

}  // namespace

// Wu et al., "Can't Be Late: Optimizing Spot Instance Savings under Deadlines", NSDI 2024: keep up with a straight line
// from nothing at the start to everything at the deadline, on spot while ahead of it; never leave too little time to
// finish on demand; do not fall back and forth.
// settings: margin
Decision decide_uniform_progress(const PolicyCall& call) {
  const Observation& seen = call.seen;
  learn_rate(seen, call.memory);
  const int nodes = asked_nodes(seen);
  const int spot = cheapest(seen, true);
  const int sure = cheapest(seen, false);
  if (spot < 0 || !seen.deadline) return all_in(seen, spot < 0 ? sure : spot, nodes);
  if (sure < 0) return all_in(seen, spot, nodes);
  const double change = (seen.restart + seen.boot).si;  // the paper's changeover delay
  const PoolView& on_spot = seen.pools[static_cast<std::size_t>(spot)];
  const PoolView& on_demand = seen.pools[static_cast<std::size_t>(sure)];

  // Safety net: on demand from here on, unless the forecast was so much too dark that there is time to go back to spot
  // and to return.
  const double needed = forecast(call, on_demand, nodes);
  const double spare = seen.deadline->si - seen.now.si - needed - 2 * change - between_looks(call);
  if (needed > 0 && spare <= 0) call.memory["net"] = 1;
  if (spare > 2 * change) call.memory.erase("net");
  if (call.memory.contains("net")) {
    Decision decision = all_in(seen, sure, nodes);
    // What trains goes on until the others can.
    if (on_demand.ready < std::min(nodes, on_demand.most))
      decision.nodes[static_cast<std::size_t>(spot)] = on_spot.ready;
    return decision;
  }
  // Exploitation: spot that is there is used.
  Decision decision = all_in(seen, spot, nodes);
  if (on_spot.held() >= std::min(nodes, on_spot.most)) return decision;
  // Where it is refused, in part or all of it, on demand fills up while progress is behind; and once it does, until the
  // lead over even progress covers the way back.
  const bool spot_refused = on_spot.waiting > 0 && on_spot.refused_for.si > 60;
  const double all = seen.done + seen.left;
  const double done = all > 0 ? seen.done / all : 1;
  const double lead = done - seen.now.si / seen.deadline->si;
  const double way_back = 2 * change / seen.deadline->si;
  if (!(spot_refused && lead < 0) && !(on_demand.held() > 0 && lead < way_back)) return decision;
  const int missing = nodes - on_spot.held();
  decision.nodes[static_cast<std::size_t>(sure)] = std::min(missing, on_demand.most);
  decision.nodes[static_cast<std::size_t>(spot)] = on_spot.held() + 1;  // ask on
  return decision;
}

}  // namespace ganymede
