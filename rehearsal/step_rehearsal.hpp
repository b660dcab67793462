#pragma once
// The steps of a scenario, rehearsed by all ranks, and what was predicted for them.

#include <string>
#include <vector>

#include "common/json_fwd.hpp"
#include "rehearsal/group.hpp"
#include "rehearsal/local_hosts.hpp"
#include "rehearsal/step_plan.hpp"
#include "sim/scenario/scenario.hpp"

namespace ganymede::rehearsal {

struct RehearsalRequest {
  const StepPlan* plan = nullptr;
  Seconds length{0};  ///< for how long steps are played, about
  /// The scenario's own fabric, at the rehearsal's scale.
  const sim::FabricGraph* fabric = nullptr;
  bool compute = false;  ///< phases are computed instead of slept through
};

/// Plays the steps on all ranks and returns at rank 0 what docs/rehearse.md describes; null elsewhere. Throws Failure
/// on all ranks if a sum is wrong, ConfigError if ranks that shall compute share a processor.
OrderedJson rehearse_steps(const RehearsalRequest& request, Group& group);

// The steps of a scenario, rehearsed between the processes that a launcher started, or that this one starts here.

struct ScenarioRehearsal {
  Seconds length{0};      ///< for how long steps are played, about
  bool computes = false;  ///< phases are computed instead of slept through
  HostsChoice hosts = {};
  bool is_study = false;  ///< of the links between the scenario's nodes, on which the ranks must then be
  /// For `--network mpirun`: the words after its name that start this program as one of the processes. To them comes
  /// --played, with the two numbers of `played`.
  std::vector<std::string> again = {};
  /// In such a process: the scale, and the seconds by which messages are held back.
  std::vector<double> played = {};
};

/// Returns at rank 0 what docs/rehearse.md describes, with its "scale"; null elsewhere. Throws ConfigError if the
/// processes or the network do not suit the scenario, Failure on all ranks if a sum is wrong.
OrderedJson rehearse_scenario(const sim::Scenario& scenario, const ScenarioRehearsal& request, const Remark& remark);

}  // namespace ganymede::rehearsal
