// Policies that choose where to train: where it is cheapest, or where electricity is cleanest.

#include <algorithm>
#include <limits>

#include "policies/policy.hpp"

namespace ganymede {
namespace {

int asked(const Observation& seen) {
  int nodes = 0;
  for (const PoolView& pool : seen.pools) nodes += pool.requested;
  return std::max(1, nodes);
}

/// The pool that is trained on now, or asked for; 0 before there is any.
std::size_t place_now(const Observation& seen) {
  std::size_t best = 0;
  int most = 0;
  for (std::size_t i = 0; i < seen.pools.size(); ++i) {
    const int nodes = seen.pools[i].held() + seen.pools[i].waiting;
    if (nodes > most) best = i, most = nodes;
  }
  return best;
}

Decision move_to(const Observation& seen, std::size_t place, int nodes) {
  Decision decision{.nodes = std::vector<int>(seen.pools.size(), 0)};
  decision.nodes[place] = std::min(nodes, seen.pools[place].most);
  return decision;
}

bool refused(const PoolView& pool) { return pool.waiting > 0 && pool.refused_for.si > 600; }

}  // namespace

// settings: saving
Decision decide_cheapest_region(const PolicyCall& call) {
  const Observation& seen = call.seen;
  learn_rate(seen, call.memory);
  const int nodes = asked(seen);
  const std::size_t now = place_now(seen);
  const bool started = seen.pools[now].held() + seen.pools[now].waiting > 0;
  const auto known = call.memory.find("rate/rate");
  const double hours = known == call.memory.end() ? 1 : time_left(seen, known->second) / 3600;
  const double moving = (seen.restart + seen.boot).si / 3600;
  std::size_t best = now;
  double best_usd = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < seen.pools.size(); ++i) {
    const PoolView& pool = seen.pools[i];
    if (refused(pool) || pool.most < 1) continue;
    const bool stay = started && i == now;
    double usd = (hours / pool.speed + (stay || !started ? 0 : moving)) * nodes * pool.usd_per_hour;
    if (!stay) usd += pool.usd_to_enter;
    // Moving must save more than it may turn out to cost.
    if (started && !stay) usd /= 1 - call.settings[0];
    if (usd < best_usd) best = i, best_usd = usd;
  }
  return move_to(seen, best, nodes);
}

// Wait awhile or go elsewhere, as in Wiesner et al., "Let's Wait Awhile", Middleware 2021: to where a kWh is cleanest,
// and not at all while it is dirty and the deadline allows.
// settings: saving, pause_above
Decision decide_carbon_aware(const PolicyCall& call) {
  const Observation& seen = call.seen;
  learn_rate(seen, call.memory);
  const int nodes = asked(seen);
  const std::size_t now = place_now(seen);
  const bool started = seen.pools[now].held() + seen.pools[now].waiting > 0;
  std::size_t best = now;
  double cleanest = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < seen.pools.size(); ++i) {
    const PoolView& pool = seen.pools[i];
    if (!pool.g_per_kwh || refused(pool) || pool.most < 1) continue;
    double grams = *pool.g_per_kwh * std::max(1.0, pool.gpu_watts) / pool.speed;
    if (started && i != now) grams /= 1 - call.settings[0];
    if (grams < cleanest) best = i, cleanest = grams;
  }
  Decision decision = move_to(seen, best, nodes);
  const double threshold = call.settings[1];
  if (threshold > 0 && seen.pools[best].g_per_kwh && *seen.pools[best].g_per_kwh > threshold && seen.deadline) {
    const auto known = call.memory.find("rate/rate");
    const double need = known == call.memory.end() ? 0 : time_left(seen, known->second);
    const double slack = seen.deadline->si - seen.now.si - need - 2 * (seen.restart + seen.boot).si;
    // Nothing is rented while it waits.
    if (need > 0 && slack > 0.1 * need) std::fill(decision.nodes.begin(), decision.nodes.end(), 0);
  }
  return decision;
}

}  // namespace ganymede
