#pragma once
// The planner: finds what to rent for a request. It simulates candidates, except for those that bounds rule out.

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "documents/plan.hpp"
#include "plan/candidates.hpp"
#include "plan/outcome.hpp"

namespace ganymede::plan {

/// Three ways to meet the goals; none is set if nothing meets them. answer.hpp defines them.
struct Cards {
  std::optional<std::size_t> cheapest, balanced, safest;
};

/// How thoroughly a plan is searched.
enum class Effort {
  quick,      ///< until a round of the search has found something that meets the goals: a first answer
  normal,     ///< until nothing that is left can be part of the answer
  exhaustive  ///< also simulates beaten candidates, to check that the answer stays the same
};
std::string_view to_string(Effort effort);

struct Plan {
  Candidates candidates;
  Effort effort = Effort::normal;
  std::vector<PlannedRun> runs;     ///< one for each candidate
  std::optional<std::size_t> best;  ///< index of the best candidate; none if nothing meets the goals
  /// The best candidate whose risk of interruption is known; equal to `best` if the risk of that one is known.
  std::optional<std::size_t> best_of_known_risk;
  /// The candidates that meet the goals and that no other one beats in both time and usd_at_worst; fastest first.
  std::vector<std::size_t> pareto;
  Cards cards;
  std::vector<std::size_t> more_money;   ///< what up to 5 % more than `best` buys (answer.hpp)
  std::vector<std::size_t> near_misses;  ///< candidates that come closest to the goals, closest first
  std::size_t simulated = 0;             ///< number of candidates that were simulated
  std::size_t untried = 0;               ///< number of `beaten` ones to which a search that ended early did not come
  std::size_t count(Verdict verdict) const;  ///< number of candidates with this verdict
};

struct PlanOptions {
  int jobs = 1;  ///< number of simulations at once
  Effort effort = Effort::normal;
  std::function<void(std::size_t done, std::size_t groups)> progress = {};
  /// Called with the best candidate so far after each round of the search that has found a better one.
  std::function<void(const PlanCandidate& candidate, const PlannedRun& run)> better = {};
  /// Once this returns true the search ends, with what is known by then. It may be asked at any time.
  std::function<bool()> stopped = {};
  // For searches that follow another one (why.hpp):
  std::function<bool(const PlanCandidate&)> only = {};  ///< candidates to consider; empty: all
  std::set<Family> families = {};                       ///< of these only; empty: of all
  /// What is known of the candidates already: another plan of the same candidates, whose runs are `beaten` where
  /// nothing is known but PlannedRun::at_least. Null: nothing is known.
  const Plan* known = nullptr;
  /// Only the best candidate is wanted, and only if its objective is at most this: others are left out as beaten.
  std::optional<double> at_most = {};
  bool all_at_most = false;  ///< all candidates whose objective is at most that are wanted
  /// What Search::evaluate() gave for a unit; empty, or none for a unit: nothing is known. The plan is the same,
  /// because what a unit lacks is simulated.
  std::function<std::optional<UnitOutcome>(std::size_t unit)> known_outcome = {};
};

/// Answers a request. The same request gives the same plan, whatever the number of jobs.
///
/// A candidate is not simulated if its bounds alone miss a goal, or if others that were simulated and meet the goals
/// beat it (Front): then it is neither the best, nor in the Pareto set, whatever its runs are. If the objective is
/// carbon, nothing is left out for being beaten. If a request allows several schemes, the one with the shortest mean
/// step is simulated.
///
/// Costs are compared with doubtful prices at their highest values: an old price wins only if it would win even then.
/// Throws ConfigError if no candidate has a valid scenario.
Plan make_plan(const Request& request, const PlanOptions& options);

/// What the request minimizes; candidates without such a figure have an infinite one.
double objective_of(const Request& request, const PlannedRun& run);

/// The row of candidate `i` in a plan's document.
documents::PlanRow row_of(const Request& request, const Plan& plan, std::size_t i);

/// A plan that was read from a file.
struct KnownPlan {
  Request request;
  Plan plan;  ///< its runs are those of the file; candidates that the file does not list are `beaten`
};

/// Reads a `ganymede.plan/1`, which must hold the request that it answers, and finds its candidates in the catalogs
/// again. Throws ConfigError if that is not possible, for example because a catalog has changed since.
KnownPlan read_plan(const JsonNode& node);

/// The plan as `ganymede.plan/1`, which `ganymede simulate` accepts. Paths in it are relative to `folder`, where the
/// file will be written.
std::string plan_json(const Request& request, const Plan& plan, const std::filesystem::path& folder);

}  // namespace ganymede::plan
