#pragma once
// Simulates the candidates of one group over several seeds.

#include <optional>
#include <vector>

#include "plan/candidate_scenarios.hpp"
#include "plan/front.hpp"
#include "plan/outcome.hpp"
#include "sim/steps/step_distribution_cache.hpp"

namespace ganymede::plan {

/// Data that the simulation of one candidate leaves for the next. The child processes that evaluate groups each fork a
/// copy and add to that.
struct EvaluationCaches {
  EvaluationCaches() { steps.use_models(workloads); }
  EvaluationCaches(const EvaluationCaches&) = delete;
  EvaluationCaches& operator=(const EvaluationCaches&) = delete;

  sim::ScenarioInputCache inputs;
  sim::StepDistributionCache steps;
  calibration::KnownWorkloads workloads;  ///< of the request's trace
};

/// The number of runs for a stated number of seeds: the same, or if an FID is the goal, five for each of an odd number
/// of seeds, each of which trains for other images.
int runs_for(const Request& request, int seeds);

/// Runs over which the probability of a plan's choice is taken: enough for 3 percentage points at 90 %, by the interval
/// of report::plan_answer().
inline constexpr int kRunsForChance = 400;

/// Takes the probability of a candidate that was simulated over kRunsForChance runs, beginning with the same seeds.
/// Fewer of them if they miss the goals already. All other figures stay those of its seeds, as for other candidates.
void add_runs_for_chance(const Request& request, const PlanCandidate& candidate, PlannedRun& run);

/// Simulates candidates of one group, which share their steps, over their seeds: Request::seeds_at_risk of them if
/// nodes may be lost at random, otherwise Request::seeds. If several schemes may be used, the one with the shortest
/// mean step is taken (the first among equals). The cheapest by their bounds come first. A member is left out, as
/// `beaten`, once `front` or the members before it beat what its runs can take and cost at least: by its own bounds, by
/// those with these steps, by each of its first five runs, or by all medians that its runs so far leave possible. Five
/// runs beat at most 1.6 % of the candidates that their medians over 20 runs would not (3.1 % over many); all others
/// are left out for certain. It is impossible if fewer than half of its seeds finish, and invalid if its scenario is
/// not valid.
UnitOutcome evaluate_group(const Request& request, const std::vector<PlanCandidate>& members, Front front,
                           CandidateScenarios& scenarios);

/// The same from `known`, which evaluate_group() returned for the same members. None if `known` is of another scheme
/// than the members, or if it lacks a run that is needed, because something was beaten there that is not here.
std::optional<UnitOutcome> repeat_group(const Request& request, const std::vector<PlanCandidate>& members, Front front,
                                        const UnitOutcome& known);

}  // namespace ganymede::plan
