#pragma once
// The scenario that a plan has chosen, so that `simulate` and `learn` take a plan's file as they take a scenario's.

#include <filesystem>
#include <vector>

#include "sim/scenario/scenario.hpp"

namespace ganymede::plan {

/// Reads a `ganymede.scenario/1`, or the scenario of the chosen candidate from a `ganymede.plan/1`. JSON pointers in
/// `overrides` start at the scenario in both cases. Throws ConfigError as load_scenario() does, and for a plan that has
/// chosen nothing.
sim::Scenario load_scenario_or_plan(const std::filesystem::path& file, const std::vector<JsonOverride>& overrides = {});

}  // namespace ganymede::plan
