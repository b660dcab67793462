#pragma once
// The planner: simulates what a request could rent, leaving out what bounds prove to be no answer.

#include <functional>
#include <string>
#include <vector>

#include "plan/candidates.hpp"

namespace ganymede {

/// Median and spread over the seeds; `low` and `high` hold all stated error too, that of doubtful prices included.
struct PlanMeasure {
  double median = 0, low = 0, high = 0;
};

enum class Verdict {
  meets,      ///< the goals, as surely as was asked
  misses,     ///< simulated, and does not
  too_slow,   ///< its bound is beyond the deadline
  too_dear,   ///< its bound is beyond the budget
  beaten,     ///< something that meets the goals is faster and cheaper than its bounds
  impossible  ///< has no result, with the reason
};

struct PlannedRun {
  Verdict verdict = Verdict::beaten;
  std::string reason;  ///< of those that miss, are too slow or too dear, or impossible
  // Of simulated ones:
  PlanMeasure time_s, usd, kg_co2e;
  double usd_at_worst = 0;  ///< median, with doubtful prices at their high ends: what candidates are ranked by
  bool carbon_known = false;
  double gpu_busy = 0, losses = 0, met_share = 0;
  int seeds = 0, never_finish = 0;
  std::string risk;    ///< how sure it is when nodes are taken back, as in a result: "none" ... "assumed"
  std::string inputs;  ///< "measured" or "transferred"
  std::vector<std::string> warnings;

  /// How often nodes are taken back is not a guess.
  bool risk_is_known() const { return risk != "assumed"; }
  bool simulated() const { return verdict == Verdict::meets || verdict == Verdict::misses; }
};

struct Plan {
  Candidates candidates;
  std::vector<PlannedRun> runs;     ///< one a candidate
  std::optional<std::size_t> best;  ///< none: nothing meets the goals
  /// The best of those whose risk of interruption is known: the best itself, if its is.
  std::optional<std::size_t> best_of_known_risk;
  /// Candidates that meet the goals, fastest first: nothing is both faster and, at high ends of doubtful prices,
  /// cheaper.
  std::vector<std::size_t> pareto;
  std::vector<std::size_t> near;  ///< the nearest that do not, nearest first
  std::size_t simulated = 0;      ///< candidates
  std::size_t count(Verdict verdict) const;
};

struct PlanOptions {
  int jobs = 1;
  bool exhaustive = false;  ///< simulates all that could meet the goals, for checking that leaving out loses nothing
  std::function<void(std::size_t done, std::size_t groups)> progress;
};

/// The same for the same request, whatever the number of jobs.
///
/// A candidate is left out if its bounds alone miss a goal, or if one that was simulated and meets the goals is both
/// faster and cheaper than they are: then it is neither the best by time or cost nor in the Pareto set. One that nobody
/// takes back is left out only if another such one is better besides. By carbon nothing is left out for being beaten.
/// Where a request names several schemes, the one with the shortest mean step is simulated.
///
/// Costs are compared with doubtful prices at their high ends: an old price wins only if it would do so even there.
Plan make_plan(const Request& request, const PlanOptions& options);

/// `ganymede.plan/1`, which `simulate` takes; files that it names are relative to `folder`, where it will lie.
std::string plan_json(const Request& request, const Plan& plan, const std::filesystem::path& folder);

}  // namespace ganymede
