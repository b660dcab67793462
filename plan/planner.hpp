#pragma once
// The planner: finds what to rent for a request. It simulates candidates, except for those that bounds rule out.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "plan/candidates.hpp"

namespace ganymede::plan {

/// A median over the seeds, with an interval that covers their spread and all stated errors, including those of
/// doubtful prices.
struct PlanMeasure {
  double median = 0, low = 0, high = 0;
};

enum class Verdict {
  meets,      ///< simulated: meets the goals in the share of runs that was asked for
  misses,     ///< simulated: does not meet them
  too_slow,   ///< not simulated: its least time is beyond the deadline
  too_dear,   ///< not simulated: its least cost is beyond the budget
  too_rare,   ///< not simulated: fewer trainings of its batch get to the FID than must meet the goals
  beaten,     ///< not simulated: another candidate that meets the goals is faster and cheaper than its bounds
  impossible  ///< has no result; PlannedRun::reason says why
};

/// What became of one candidate.
struct PlannedRun {
  Verdict verdict = Verdict::beaten;
  std::string reason;  ///< why the candidate cannot be the answer; empty if it meets the goals or is beaten
  // Set only if it was simulated:
  PlanMeasure time_s, usd, kg_co2e;
  /// Median cost in dollars with each doubtful price at its highest value; candidates are ranked by it.
  double usd_at_worst = 0;
  bool carbon_known = false;  ///< if false, kg_co2e has no meaning
  double gpu_busy = 0;        ///< share of the held GPU time in which GPUs work, mean over the seeds
  double images_per_s = 0;    ///< images a second while training, mean over the seeds
  double losses = 0;          ///< nodes lost, mean over the seeds
  double met_share = 0;       ///< share of the seeds that meet the goals if no stated error is counted
  /// Probability to meet the goals: the mean over the seeds, each with all its stated error (chances.hpp). If it is too
  /// rare, not simulated: the share of trainings that get to the FID.
  double probability = 0;
  /// Mean cost in dollars over the seeds and the stated error of the time, with doubtful prices at their highest
  /// values: of all outcomes, and of the worst tenth of them. Absent if some seed's run never finishes.
  std::optional<double> usd_expected, usd_worst_tenth;
  double usd_per_image = 0;  ///< if an FID is the goal: dollars by which each image more raises the cost
  int seeds = 0;             ///< number of seeds that were simulated
  int never_finish = 0;      ///< number of simulated seeds whose runs never finish
  std::string risk;    ///< how well it is known how often nodes are taken back, as in a result's `provenance.risk`
  std::string inputs;  ///< "measured" or "transferred"
  std::vector<std::string> warnings;

  /// False if it is only assumed how often nodes are taken back.
  bool risk_is_known() const { return risk != "assumed"; }
  bool simulated() const { return verdict == Verdict::meets || verdict == Verdict::misses; }
};

/// Three ways to meet the goals; none is set if nothing meets them. answer.hpp defines them.
struct Cards {
  std::optional<std::size_t> cheapest, balanced, safest;
};

struct Plan {
  Candidates candidates;
  std::vector<PlannedRun> runs;     ///< one for each candidate
  std::optional<std::size_t> best;  ///< index of the best candidate; none if nothing meets the goals
  /// The best candidate whose risk of interruption is known; equal to `best` if the risk of that one is known.
  std::optional<std::size_t> best_of_known_risk;
  /// The candidates that meet the goals and that no other one beats in both time and usd_at_worst; fastest first.
  std::vector<std::size_t> pareto;
  Cards cards;
  std::vector<std::size_t> more_money;       ///< what up to 5 % more than `best` buys (answer.hpp)
  std::vector<std::size_t> near_misses;      ///< candidates that come closest to the goals, closest first
  std::size_t simulated = 0;                 ///< number of candidates that were simulated
  std::size_t count(Verdict verdict) const;  ///< number of candidates with this verdict
};

struct PlanOptions {
  int jobs = 1;             ///< number of simulations at once
  bool exhaustive = false;  ///< simulates beaten candidates too, to check that the answer stays the same
  std::function<void(std::size_t done, std::size_t groups)> progress = {};
  // For searches that follow another one (why.hpp):
  std::function<bool(const PlanCandidate&)> only = {};  ///< candidates to consider; empty: all
  /// What is known of the candidates already: another plan of the same candidates, whose runs are `beaten` where
  /// nothing is known. Null: nothing is known.
  const Plan* known = nullptr;
  /// Only the best candidate is wanted, and only if its objective is at most this: others are left out as beaten.
  std::optional<double> at_most = {};
  /// The outcome that PlanUnits::evaluate() gave for a unit, or null; empty: none is known. The plan is the same,
  /// because what a unit lacks is simulated.
  std::function<Json(std::size_t unit)> known_outcome = {};
};

/// Answers a request. The same request gives the same plan, whatever the number of jobs.
///
/// A candidate is not simulated if its bounds alone miss a goal, or if another one that was simulated and meets the
/// goals is both faster and cheaper than its bounds: then it is neither the best by time or cost, nor in the Pareto
/// set. A candidate whose nodes cannot be taken back is left out only if one of known risk is better too, because the
/// plan names the best of those. If the objective is carbon, nothing is left out for being beaten. Where the objective
/// is risk, a candidate is also simulated if its bounds do not prove that the best one's risk is lower. If a request
/// allows several schemes, the one with the shortest mean step is simulated.
///
/// Costs are compared with doubtful prices at their highest values: an old price wins only if it would win even then.
/// Throws ConfigError if no candidate has a valid scenario.
Plan make_plan(const Request& request, const PlanOptions& options);

/// The search of make_plan() in units, for processes that share it out: each evaluates its own units, knowing some of
/// the others' outcomes or none. PlanOptions::known_outcome then makes the plan of them.
///
/// A unit leaves out what candidates of earlier rounds beat. The one search knows them too, or others that beat these,
/// so that it leaves out at least as much, and lacks nothing.
class PlanUnits {
 public:
  /// `request` must outlive the units.
  explicit PlanUnits(const Request& request, const PlanOptions& options);
  ~PlanUnits();
  PlanUnits(const PlanUnits&) = delete;
  PlanUnits& operator=(const PlanUnits&) = delete;

  std::size_t size() const;
  std::string label(std::size_t unit) const;
  /// Throws ConfigError, located, unless `outcome` is one of evaluate() for this unit, which must not be learned yet.
  void check(std::size_t unit, const JsonNode& outcome) const;
  /// Says what evaluate() returned for a unit, in this process or in another one.
  void learn(std::size_t unit, const Json& outcome);
  /// Simulates the unit's candidates, apart from those that are beaten. A unit must not be evaluated once it is
  /// learned.
  Json evaluate(std::size_t unit);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// What the request minimizes; candidates without such a figure have an infinite one.
double objective_of(const Request& request, const PlannedRun& run);

/// The row of candidate `i` in a plan's JSON.
OrderedJson row_json(const Request& request, const Plan& plan, std::size_t i);

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
