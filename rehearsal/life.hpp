#pragma once
// The whole life of a scenario, predicted and then played: nodes that boot, are taken back and crash, checkpoints,
// restarts, and the policy that decides, from the request to the last step.

#include "common/json_fwd.hpp"
#include "platforms/platform.hpp"
#include "rehearsal/ping.hpp"
#include "sim/scenario/scenario.hpp"

namespace ganymede::rehearsal {

struct LifeRequest {
  int hosts = 0;
  double scale = 0;  ///< real seconds for one of the scenario; 0: as long as makes the predicted life last `length`
  Seconds length{0};
  bool name_spaces = false;
  double loss = 0;  ///< share of packets that are lost
};

/// The network between two nodes of the scenario, as its platform states it. Throws ConfigError for scenarios whose
/// life cannot be played: see check_life().
Ping network_of_life(const sim::Scenario& scenario);

/// Throws ConfigError, located in the scenario, for what a life does not play: several GPUs on a node, pools of several
/// instance types or regions, a dataset in a storage that is modelled.
void check_life(const sim::Scenario& scenario);

/// Simulates the life, then plays it with the same policy, from the same seeds, and returns what docs/rehearse.md
/// describes: both results, and how far they are apart. `step_scale` is the least number of times as long as the
/// scenario's that a played step must take, because the machine cannot move its bytes faster. Throws ConfigError if
/// --hosts, --for or --scale do not suit the life, Infeasible if it never ends, Failure if a process fails.
OrderedJson rehearse_life(const sim::Scenario& scenario, const LifeRequest& request, double step_scale);

}  // namespace ganymede::rehearsal
