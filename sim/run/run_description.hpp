#pragma once
// The fields of a run's result that follow from the scenario alone.

#include "sim/run/result.hpp"
#include "sim/scenario/scenario.hpp"

namespace ganymede::sim {

/// Sets names, sources and goals of `result`.
void describe(Result& result, const Scenario& scenario);

}  // namespace ganymede::sim
