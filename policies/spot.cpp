// Policies that choose between markets: spot nodes that may be taken back, and on-demand ones that stay.

#include <algorithm>
#include <cmath>

#include "policies/policy.hpp"

namespace ganymede {
namespace {

int asked(const Observation& seen) {
  int nodes = 0;
  for (const PoolView& pool : seen.pools) nodes += pool.requested;
  return std::max(1, nodes);
}

/// The cheapest pool that is (not) on the spot market; -1: none.
int cheapest(const Observation& seen, bool spot) {
  int best = -1;
  for (std::size_t i = 0; i < seen.pools.size(); ++i) {
    if ((seen.pools[i].market == Market::spot) != spot) continue;
    if (best < 0 || seen.pools[i].usd_per_hour < seen.pools[static_cast<std::size_t>(best)].usd_per_hour)
      best = static_cast<int>(i);
  }
  return best;
}

Decision all_in(const Observation& seen, int pool, int nodes) {
  Decision decision{.nodes = std::vector<int>(seen.pools.size(), 0)};
  if (pool >= 0)
    decision.nodes[static_cast<std::size_t>(pool)] = std::min(nodes, seen.pools[static_cast<std::size_t>(pool)].most);
  return decision;
}

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

// settings: patience, retry
Decision decide_spot_first(const PolicyCall& call) {
  const Observation& seen = call.seen;
  const int nodes = asked(seen);
  const int spot = cheapest(seen, true);
  const int sure = cheapest(seen, false);
  if (spot < 0) return all_in(seen, sure, nodes);
  if (sure < 0) return all_in(seen, spot, nodes);
  const PoolView& pool = seen.pools[static_cast<std::size_t>(spot)];
  Decision decision = all_in(seen, spot, nodes);
  // A request that was not met in time is met on demand; spot is asked again after a while.
  const auto fell_back = call.memory.find("fell_back_at");
  const bool waited = pool.waiting > 0 && pool.refused_for.si > call.settings[0];
  if (waited && fell_back == call.memory.end()) call.memory["fell_back_at"] = seen.now.si;
  const auto since = call.memory.find("fell_back_at");
  if (since == call.memory.end()) return decision;
  if (seen.now.si - since->second > call.settings[1] && pool.waiting == 0) {
    call.memory.erase(since);
    return decision;
  }
  const int have = std::min(nodes, pool.held());
  // One request stays open, so that spot capacity is noticed when it comes back.
  decision.nodes[static_cast<std::size_t>(spot)] = std::min(nodes, have + 1);
  decision.nodes[static_cast<std::size_t>(sure)] = nodes - have;
  if (have == nodes) call.memory.erase("fell_back_at");
  return decision;
}

// Wu et al., "Can't Be Late: Optimizing Spot Instance Savings under Deadlines", NSDI 2024: keep up with a straight line
// from nothing at the start to everything at the deadline, on spot while ahead of it; never leave too little time to
// finish on demand; do not fall back and forth.
// settings: margin
Decision decide_uniform_progress(const PolicyCall& call) {
  const Observation& seen = call.seen;
  learn_rate(seen, call.memory);
  const int nodes = asked(seen);
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

// As many nodes as the deadline needs and no more, by the speed that is measured; on spot while there is time to fall
// back.
// settings: margin
Decision decide_deadline(const PolicyCall& call) {
  const Observation& seen = call.seen;
  learn_rate(seen, call.memory);
  const int sure = cheapest(seen, false);
  const int spot = cheapest(seen, true);
  if (!seen.deadline) return all_in(seen, sure < 0 ? spot : sure, asked(seen));
  const double left = seen.deadline->si - seen.now.si;
  const auto enough = [&](int pool, double pause) {
    const PoolView& view = seen.pools[static_cast<std::size_t>(pool)];
    for (int nodes = 1; nodes < view.most; ++nodes) {
      const double rate = predicted_rate(seen, call.memory, nodes * view.gpus_per_node);
      if (rate > 0 && time_left(seen, rate) * (1 + call.settings[0]) + pause <= left) return nodes;
    }
    return view.most;
  };
  if (!call.memory.contains("rate/rate")) return all_in(seen, spot >= 0 ? spot : sure, asked(seen));
  const double change = (seen.restart + seen.boot).si;
  int pool = sure;
  // Spot has to leave room for one loss: its restart, and the work since the last durable checkpoint.
  if (spot >= 0 && seen.pools[static_cast<std::size_t>(spot)].refused_for.si < 300) {
    const PoolView& view = seen.pools[static_cast<std::size_t>(spot)];
    const double rate = predicted_rate(seen, call.memory, view.most * view.gpus_per_node);
    const double slack = left - time_left(seen, rate) * (1 + call.settings[0]);
    if (sure < 0 || slack > 3 * change + seen.since_durable.si) pool = spot;
  }
  if (pool < 0) pool = spot;
  const int now = current_nodes(seen)[static_cast<std::size_t>(pool)];
  const int need = enough(pool, change);
  // One node fewer is not worth a restart; what is needed is.
  const bool keep = now > 0 && need <= now && need > now / 2;
  return all_in(seen, pool, keep ? now : need);
}

// The fastest allocation that the money reaches for to the end; the cheapest where none does.
// settings: margin
Decision decide_budget(const PolicyCall& call) {
  const Observation& seen = call.seen;
  learn_rate(seen, call.memory);
  const int sure = cheapest(seen, false);
  const int spot = cheapest(seen, true);
  const int first = spot >= 0 && seen.pools[static_cast<std::size_t>(spot)].refused_for.si < 600 ? spot
                    : sure >= 0                                                                  ? sure
                                                                                                 : spot;
  if (!seen.budget_usd || !call.memory.contains("rate/rate")) return all_in(seen, first, asked(seen));
  const PoolView& pool = seen.pools[static_cast<std::size_t>(first)];
  const double money = *seen.budget_usd - seen.spent_usd;
  const int now = current_nodes(seen)[static_cast<std::size_t>(first)];
  int best = 1;
  double shortest = 0;
  for (int nodes = 1; nodes <= pool.most; ++nodes) {
    const double rate = predicted_rate(seen, call.memory, nodes * pool.gpus_per_node);
    const double seconds = time_left(seen, rate) + (nodes == now ? 0 : (seen.restart + seen.boot).si);
    const bool affordable = seconds / 3600 * nodes * pool.usd_per_hour * (1 + call.settings[0]) <= money;
    if (affordable && (shortest == 0 || seconds < 0.95 * shortest)) best = nodes, shortest = seconds;
  }
  return all_in(seen, first, best);
}

}  // namespace ganymede
