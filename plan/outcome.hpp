#pragma once
// What became of candidates, as the search keeps it and as processes hand it to each other.

#include <optional>
#include <string>
#include <vector>

#include "common/json_fwd.hpp"

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

/// What a candidate's medians are at least, by some of its runs; costs with doubtful prices at their highest values.
struct RunsAtLeast {
  double time_s = 0, usd_at_worst = 0;
};

/// What became of one candidate.
struct PlannedRun {
  Verdict verdict = Verdict::beaten;
  std::string reason;    ///< why the candidate cannot be the answer; empty if it meets the goals or is beaten
  bool invalid = false;  ///< it is impossible because its scenario is not valid
  /// By its first runs; if it is beaten, what of it is: its bounds, or more. 0 if another candidate stands for it.
  RunsAtLeast at_least;
  // Set only if it was simulated:
  PlanMeasure time_s, usd, kg_co2e;
  /// Median cost in dollars with each doubtful price at its highest value; candidates are ranked by it.
  double usd_at_worst = 0;
  bool carbon_known = false;  ///< if false, kg_co2e has no meaning
  double gpu_busy = 0;        ///< share of the held GPU time in which GPUs work, mean over the seeds
  double images_per_s = 0;    ///< images a second while training, mean over the seeds
  double losses = 0;          ///< nodes lost, mean over the seeds
  double lost_s = 0;          ///< training that is lost with them, mean over the seeds
  double saved_every_s = 0;   ///< training between two checkpoints, mean over the seeds; 0 if none is written
  double met_share = 0;       ///< share of the seeds that meet the goals if no stated error is counted
  /// Probability to meet the goals: the mean over the seeds, each with all its stated error (chances.hpp). If it is too
  /// rare, not simulated: the share of trainings that get to the FID.
  double probability = 0;
  int probability_runs = 0;  ///< how many runs it is the mean of, if they are more than `seeds` (add_runs_for_chance())
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

/// What became of candidates that were evaluated together, because they share their steps.
struct UnitOutcome {
  std::string scheme;          ///< the fastest that they can use; empty: all of them are beaten
  std::vector<double> mean_s;  ///< its mean step for each stage; empty if no scheme works
  double images = 0;           ///< images that such a step trains
  /// One for each candidate: `beaten` or `impossible`, or its figures as `misses` of which judge() says what they mean.
  std::vector<PlannedRun> runs;
};

/// The outcome for another process, or for a file of shards.
Json outcome_json(const UnitOutcome& outcome);
/// Reads outcome_json(). Throws ConfigError, located, unless it is an outcome of `members` candidates.
UnitOutcome read_outcome(const JsonNode& node, std::size_t members);

}  // namespace ganymede::plan
