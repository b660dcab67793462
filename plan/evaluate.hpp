#pragma once
// What simulations say of the candidates of one group; runs in a child process.

#include <functional>
#include <string>
#include <vector>

#include "plan/candidates.hpp"
#include "sim/scenario/scenario.hpp"
#include "sim/steps/step_distribution_cache.hpp"

namespace ganymede {

/// What simulating one candidate leaves for the next. A search owns one; the child processes that evaluate groups fork
/// a copy each and add to that.
struct EvaluationCaches {
  ScenarioInputCache inputs;
  StepDistributionCache steps;
};

/// How many seeds a candidate is run with: more where something random happens to its nodes.
int runs_of(const Request& request, const Scenario& scenario);

/// Medians over the seeds with the 5th to the 95th percentile, as JSON: see planner.cpp for who reads it.
/// { "impossible": why } where fewer than half of the seeds finish.
nlohmann::json simulate_candidate(const Request& request, const PlanCandidate& candidate, EvaluationCaches& caches);

/// Bounds of what was not left out before -> whether they are beaten.
using Beaten = std::function<bool(const PlanCandidate& candidate, const Bounds& bounds)>;

/// { "scheme": the fastest of the group's, "answers": [one a member] }. Where several schemes may be used, the mean
/// steps of all are compared and the fastest is taken, the first of those that are equal. A member whose bounds by
/// those steps are beaten is not simulated: { "beaten": true }.
nlohmann::json evaluate_group(const Request& request, const std::vector<PlanCandidate>& members, const Beaten& beaten,
                              EvaluationCaches& caches);

}  // namespace ganymede
