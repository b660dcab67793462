#pragma once
// Simulates the candidates of one group over several seeds. This runs in a child process, so results are JSON.

#include <functional>
#include <string>
#include <vector>

#include "plan/candidates.hpp"
#include "sim/scenario/scenario.hpp"
#include "sim/steps/step_distribution_cache.hpp"

namespace ganymede::plan {

/// Data that the simulation of one candidate leaves for the next. A search owns one; the child processes that evaluate
/// groups each fork a copy and add to that.
struct EvaluationCaches {
  sim::ScenarioInputCache inputs;
  sim::StepDistributionCache steps;
};

/// The number of runs for a stated number of seeds: the same, or if an FID is the goal, five for each of an odd number
/// of seeds, each of which trains for other images.
int runs_for(const Request& request, int seeds);

/// How many seeds a candidate is simulated with: runs_for() Request::seeds_at_risk if its nodes may be lost at random,
/// otherwise Request::seeds.
int seeds_needed(const Request& request, const sim::Scenario& scenario);

/// Simulates the candidate over its seeds and returns medians and intervals over them, in the form that planner.cpp
/// reads. Returns { "impossible": reason } if fewer than half of the seeds finish, and { "invalid": reason } if the
/// candidate's scenario is not valid.
Json simulate_candidate(const Request& request, const PlanCandidate& candidate, EvaluationCaches& caches);

/// Returns true if a candidate with these bounds cannot be part of the answer any more.
using IsBeaten = std::function<bool(const PlanCandidate& candidate, const Bounds& bounds)>;

/// Candidates of one group that are evaluated together, because they share their steps.
struct EvaluationUnit {
  /// Its steps are those of all; it need not be a member.
  const PlanCandidate& first;
  std::vector<PlanCandidate> members;
};

/// Returns { "scheme": the fastest scheme, "mean_s": its mean step for each stage, "images": images of a step,
/// "answers": [one for each member] }. If several schemes may be used, the one with the shortest mean step is taken
/// (the first among equals); "mean_s" is empty if none works. A member whose bounds with those steps are beaten is not
/// simulated, and its answer is { "beaten": true }.
Json evaluate_group(const Request& request, const EvaluationUnit& unit, const IsBeaten& is_beaten,
                    EvaluationCaches& caches);

/// The same from `known`, which evaluate_group() returned for the same first candidate: `answers` holds its answer for
/// each member. Null if `known` is of another scheme than the members, or if it lacks an answer that is needed, because
/// less was beaten here than there.
Json repeat_group(const Request& request, const EvaluationUnit& unit, const IsBeaten& is_beaten, const Json& known,
                  const std::vector<Json>& answers);

}  // namespace ganymede::plan
