#pragma once
// What a run was asked to be: the fields of its result that follow from the scenario alone.

#include "sim/run/result.hpp"
#include "sim/scenario/scenario.hpp"

namespace ganymede::sim {

/// Fills in names, sources and goals.
void describe(Result& result, const Scenario& scenario);

}  // namespace ganymede::sim
