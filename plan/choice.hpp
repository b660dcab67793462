#pragma once
// The choice among a plan's candidates once each has a verdict.

#include "plan/planner.hpp"

namespace ganymede::plan {

/// Why a simulated candidate does not meet the goals.
std::string describe_miss(const Request& request, const PlannedRun& run);

/// Says whether a simulated candidate meets the goals, and if not, why.
void judge(const Request& request, PlannedRun& run);

/// True if candidate `a`, which meets the goals, is better than `b` or if there is no `b`. Between equal ones the
/// faster is better, then the cheaper (time_and_cost()).
bool is_better(const Request& request, const Plan& plan, std::size_t a, const std::optional<std::size_t>& b);

/// Fills in all that a plan says of its candidates together: the best ones, the Pareto set, the cards, what more money
/// buys, and the near misses.
void choose_answer(const Request& request, Plan& plan);

}  // namespace ganymede::plan
