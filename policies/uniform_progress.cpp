#include "policies/choices.hpp"

namespace ganymede {
namespace {

/// What uniform progress would have done by now: the work, spread evenly over the time until the deadline.
struct Pace {
  double needed;    ///< seconds of training that are left at the speed that was measured; 0 before it is known
  double expected;  ///< share of the work that even progress would have done
  double done;      ///< share of the work that is done
};

Pace pace_of(const Observation& seen, const PolicyMemory& memory) {
  const auto known = memory.find("rate/rate");
  const double rate = known == memory.end() ? 0 : known->second;
  const double all = seen.done + seen.left;
  return {rate > 0 ? seen.left / rate : 0, seen.now.si / seen.deadline->si, all > 0 ? seen.done / all : 1};
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
  const Pace pace = pace_of(seen, call.memory);
  const double change = (seen.restart + seen.boot).si;  // the paper's changeover delay
  const PoolView& on_spot = seen.pools[static_cast<std::size_t>(spot)];
  const PoolView& on_demand = seen.pools[static_cast<std::size_t>(sure)];

  // Safety net: on demand from here on, whatever happens.
  const double left = seen.deadline->si - seen.now.si;
  if (pace.needed > 0 && left <= pace.needed * (1 + call.settings[0]) + 2 * change) call.memory["net"] = 1;
  if (call.memory.contains("net")) return all_in(seen, sure, nodes);
  // Exploitation: spot that is held is used.
  if (on_spot.held() > 0 && on_spot.waiting == 0) return all_in(seen, spot, nodes);
  const bool spot_refused = on_spot.waiting > 0 && on_spot.refused_for.si > 60;
  const double lead = pace.done - (seen.now.si + 2 * change) / seen.deadline->si;
  // Hysteresis: once on demand, until the lead covers the way back.
  if (on_demand.held() > 0 && lead < 0) return all_in(seen, sure, nodes);
  Decision decision = all_in(seen, spot, nodes);
  if (spot_refused && pace.done < pace.expected) {
    decision = all_in(seen, sure, nodes);
    decision.nodes[static_cast<std::size_t>(spot)] = 1;  // ask on
  }
  return decision;
}

}  // namespace ganymede
