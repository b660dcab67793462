#pragma once
// The whole life of a scenario, predicted and then played: nodes that boot, are taken back and crash, checkpoints,
// restarts, and the policy that decides, from the request to the last step.

#include "common/json_fwd.hpp"
#include "rehearsal/local_hosts.hpp"
#include "sim/scenario/scenario.hpp"

namespace ganymede::rehearsal {

struct LifeRequest {
  Seconds length{0};  ///< for how long the life is played, about, unless hosts.scale says so
  HostsChoice hosts = {};
};

/// Simulates the life, then plays it with the same policy, from the same seeds, and returns what docs/rehearse.md
/// describes: both results, and how far they are apart. A played step takes so many times as long as the scenario's
/// that this machine can move its bytes. Throws ConfigError if --hosts, --network, --for or --scale do not suit the
/// life, Infeasible if it never ends, Failure if a process fails.
OrderedJson rehearse_life(const sim::Scenario& scenario, const LifeRequest& request, const Remark& remark);

}  // namespace ganymede::rehearsal
