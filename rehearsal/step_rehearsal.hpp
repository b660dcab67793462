#pragma once
// The steps of a scenario, rehearsed by all ranks, and what was predicted for them.

#include "common/json_fwd.hpp"
#include "rehearsal/group.hpp"
#include "rehearsal/ping.hpp"
#include "rehearsal/step_plan.hpp"

namespace ganymede::rehearsal {

struct RehearsalRequest {
  const StepPlan* plan = nullptr;
  Seconds length{0};  ///< for how long steps are played, about
  /// The scenario's own fabric, at the rehearsal's scale.
  const sim::FabricGraph* fabric = nullptr;
  bool compute = false;  ///< phases are computed instead of slept through
};

/// Throws ConfigError if so many ranks on this machine cannot compute at the same time.
void check_processors(int ranks);

/// Plays the steps on all ranks and returns at rank 0 what docs/rehearse.md describes; null elsewhere. Throws Failure
/// on all ranks if a sum is wrong, ConfigError if ranks that shall compute share a processor.
OrderedJson rehearse_steps(const RehearsalRequest& request, Group& group);

}  // namespace ganymede::rehearsal
