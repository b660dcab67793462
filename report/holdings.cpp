#include "report/holdings.hpp"

#include <algorithm>
#include <map>

namespace ganymede::report {
namespace {
/// The state of one pool between two of its events.
struct Pool {
  int held = 0, asked = 0;
  int waiting = 0;  // nodes among `asked` that the provider does not have at the moment
  double since = 0;
};

/// Changes the pool as an event says.
void apply(Pool& pool, const std::string& what, int nodes) {
  if (what == "requested") pool.asked += nodes;
  if (what == "waiting") pool.waiting += nodes;
  if (what == "provisioned") {
    pool.asked -= std::min(nodes, pool.asked);
    pool.waiting = std::min(pool.waiting, pool.asked);
    pool.held += nodes;
  }
  if (what == "lost" || what == "crashed") pool.held = std::max(0, pool.held - nodes);
  if (what == "released") {
    const int gone = std::min(nodes, pool.held);
    pool.held -= gone;
    pool.asked = std::max(0, pool.asked - (nodes - gone));
  }
}

}  // namespace

std::vector<Holding> holdings_of(const documents::Result& run) {
  std::map<std::string, Pool> pools;
  std::vector<Holding> out;
  const auto end_holding = [&](const std::string& name, Pool& pool, double at) {
    if (at > pool.since && pool.held + pool.asked > 0) out.push_back({name, pool.since, at, pool.held, pool.asked});
    pool.since = at;
  };
  for (const documents::RunEvent& event : run.events) {
    const double at = event.at.si;
    if (event.what == "ready")
      // Training begins, so all requested nodes have started except those that the provider does not have.
      for (auto& [name, pool] : pools) {
        if (pool.asked == pool.waiting) continue;
        end_holding(name, pool, at);
        pool.held += pool.asked - pool.waiting;
        pool.asked = pool.waiting;
      }
    if (event.pool.empty() || event.nodes == 0) continue;
    Pool& pool = pools[event.pool];
    Pool after = pool;
    apply(after, event.what, event.nodes);
    if (after.held != pool.held || after.asked != pool.asked) end_holding(event.pool, pool, at);
    after.since = pool.since;
    pool = after;
  }
  for (auto& [name, pool] : pools) end_holding(name, pool, run.total.si);
  std::stable_sort(out.begin(), out.end(), [](const Holding& a, const Holding& b) { return a.from_s < b.from_s; });
  return out;
}

}  // namespace ganymede::report
