#pragma once
// The choice among a plan's candidates once each has a verdict.

#include "plan/planner.hpp"

namespace ganymede::plan {

/// Why a simulated candidate does not meet the goals.
std::string describe_miss(const Request& request, const PlannedRun& run);

/// Says whether a simulated candidate meets the goals, and if not, why.
void judge(const Request& request, PlannedRun& run);

/// Fills in all that a plan says of its candidates together: the best ones, the Pareto set, the cards, what more money
/// buys, and the near misses.
void choose_answer(const Request& request, Plan& plan);

}  // namespace ganymede::plan
