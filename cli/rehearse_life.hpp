#pragma once
// ganymede rehearse --life: the whole life of a scenario, with real processes.

#include <string>
#include <vector>

#include "cli/hosts_options.hpp"
#include "common/json_fwd.hpp"
#include "sim/scenario/scenario.hpp"

namespace ganymede::cli {

struct LifeOptions {
  std::string scenario;
  Seconds length;
  HostsChoice hosts;
  std::vector<std::string> assignments;
};

void run_life(const LifeOptions& options, const Shared& shared);

/// The scenario as a study's run: with absolute paths, since the study may be in another folder, and without what a
/// rehearsal does not play.
OrderedJson scenario_of_study(const sim::Scenario& scenario);

}  // namespace ganymede::cli
