#include "policies/choices.hpp"

namespace ganymede {

// As many nodes as the deadline needs and no more, by the speed that is measured; on spot while there is time to fall
// back.
// settings: margin
Decision decide_deadline(const PolicyCall& call) {
  const Observation& seen = call.seen;
  learn_rate(seen, call.memory);
  const int sure = cheapest(seen, false);
  const int spot = cheapest(seen, true);
  if (!seen.deadline) return all_in(seen, sure < 0 ? spot : sure, asked_nodes(seen));
  const double left = seen.deadline->si - seen.now.si;
  const auto enough = [&](int pool, double pause) {
    const PoolView& view = seen.pools[static_cast<std::size_t>(pool)];
    for (int nodes = 1; nodes < view.most; ++nodes) {
      const double rate = predicted_rate(seen, call.memory, nodes * view.gpus_per_node);
      if (rate > 0 && time_left(seen, rate) * (1 + call.settings[0]) + pause <= left) return nodes;
    }
    return view.most;
  };
  if (!call.memory.contains("rate/rate")) return all_in(seen, spot >= 0 ? spot : sure, asked_nodes(seen));
  const double change = (seen.restart + seen.boot).si;
  int pool = sure;
  // Spot has to leave room for one loss: its restart, and the work since the last durable checkpoint.
  if (spot >= 0 && !refuses(call, spot)) {
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

}  // namespace ganymede
