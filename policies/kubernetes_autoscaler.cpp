#include <algorithm>
#include <cmath>

#include "policies/choices.hpp"

namespace ganymede {

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

}  // namespace ganymede
