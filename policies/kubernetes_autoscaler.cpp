#include <algorithm>
#include <cmath>

#include "policies/policy_helpers.hpp"

namespace ganymede::policies {
namespace {

constexpr PolicySetting kKubernetesSettings[] = {
    {"target", 0.8, 0.01, 1, "share of busy GPU time that it steers for"},
    {"tolerance", 0.1, 0, 1, "nothing is done while this near to it (Kubernetes: 0.1)"},
    {"down_after_s", 600, 0, 1e9, "seconds of low use before nodes go (cluster autoscaler: 10 min)"}};

// Sets the nodes of the first pool to ceil(nodes x busy share / target), by the rule of the horizontal autoscaler.
// Nodes are given back only after `down_after_s` seconds of low use, as by the cluster autoscaler.
Decision decide_kubernetes_autoscaler(const PolicyCall& call) {
  const Observation& observation = call.observation;
  const int now = first_pool_nodes(observation);
  if (is_unsettled(observation)) return resize_first_pool(observation, now);
  const double ratio = observation.gpu_busy / call.settings[0];
  int desired = now;
  if (std::abs(ratio - 1) > call.settings[1]) desired = static_cast<int>(std::ceil(now * ratio));
  desired = std::clamp(desired, 1, std::max(1, observation.pools[0].most));
  if (desired >= now) {
    call.memory.erase("low_since");
    return resize_first_pool(observation, desired);
  }
  // Nodes are given back only if use has been low during the whole stabilization window.
  const auto since = call.memory.try_emplace("low_since", observation.now.si).first;
  if (observation.now.si - since->second < call.settings[2]) return resize_first_pool(observation, now);
  call.memory.erase("low_since");
  return resize_first_pool(observation, desired);
}

}  // namespace

Policy kubernetes_autoscaler_policy() {
  return {.name = "kubernetes-autoscaler",
          .summary = "the nodes that bring GPU use to a target, with Kubernetes' delays",
          .source = "Kubernetes documentation: horizontal pod and cluster autoscaler",
          .settings = kKubernetesSettings,
          .decide = decide_kubernetes_autoscaler};
}

}  // namespace ganymede::policies
