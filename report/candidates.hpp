#pragma once
// The candidates that a report compares: runs, groups of runs and candidates of plans in one form.

#include <array>
#include <string>
#include <vector>

#include "common/gpu_use.hpp"
#include "common/json_fwd.hpp"
#include "documents/plan.hpp"
#include "documents/result.hpp"

namespace ganymede::report {

/// A value with its interval. A member that is not finite is unknown, for example a cost without a price.
struct Estimate {
  double middle = 0, low = 0, high = 0;
};

/// One thing to compare: a run, runs that differ in their seed alone, or a candidate of a plan.
struct ReportCandidate {
  std::string infrastructure;    ///< provider and region, and the market if it is not on demand
  std::string provider, region;  ///< of several pools: "aws + gcp"
  std::string rented;            ///< "2 x p3.2xlarge"
  std::string market, gpu, scheme, policy;
  /// The most GPUs that a run held at a time; with a policy, some run may have held only `fewest_gpus`.
  int gpus = 0;
  int fewest_gpus = 0;
  int runs = 1;
  /// For one run its value and stated error; for several seeds their median and interval (seed_quantiles), as in plans.
  Estimate time_s, usd;
  /// The cost that the Pareto set compares: usd.middle, but for a plan's candidate its cost with doubtful prices at
  /// their high ends. Not finite for a candidate that the plan does not rank because it misses the goals.
  double ranked_usd = 0;
  /// The parts of usd.middle that scale with the prices of instances, at spot prices and at others. 0 for several runs,
  /// each of which has its own (instance_usd()).
  double spot_usd = 0, instance_usd = 0;
  double images = 0;        ///< images trained
  double images_per_s = 0;  ///< rate while training: the median of runs, a plan's mean; not finite if unknown
  /// Dollars for an hour of a GPU: of a plan's candidate what its nodes cost while they are held, of runs the median
  /// bill of a GPU-hour. Not finite without a price.
  double usd_per_gpu_hour = 0;
  double gpu_busy = 0;  ///< from 0 to 1
  double kwh, kg_co2e;  ///< medians over the runs; not finite if unknown
  double losses = 0;    ///< nodes lost, mean over the runs
  /// Share of the runs that meet the goals; for a plan's candidate its probability to meet them, with all stated error.
  double met_share = 1;
  std::string met;                                    ///< the same as text
  bool chosen = false;                                ///< the plan chose it
  bool risk_assumed = false, price_doubtful = false;  ///< the plan's marks (plans.hpp)
  bool scales = true;       ///< its number of GPUs never changes, so that it is a point of a scaling curve
  bool has_ledger = false;  ///< gpu_seconds is known; plans do not record it
  std::array<double, kGpuUseNames.size()> gpu_seconds{};  ///< mean over the runs
  /// The run that the report shows in detail: the only one, or the one of median time. Null for a plan's
  /// candidate.
  const documents::Result* run = nullptr;
  std::vector<const documents::Result*> of_runs;  ///< all runs
};

/// Returns one candidate for a result, or one for each configuration of a sweep, in the order of the runs, which must
/// outlive the candidates.
std::vector<ReportCandidate> candidate_of(const documents::Result& run);
std::vector<ReportCandidate> candidates_of(const std::vector<documents::Result>& runs);
/// Returns one candidate for each simulated one of a plan.
std::vector<ReportCandidate> candidates_of(const documents::Plan& plan);

/// Indices of the candidates that no other beats in both time and ranked_usd, the fastest first. This is the rule and
/// the order of plans. Candidates without a price are left out.
std::vector<std::size_t> pareto_of(const std::vector<ReportCandidate>& candidates);

/// The candidate's GPUs as text: "8 x V100", or "4 to 8 x V100" if their number changed.
std::string gpus_of(const ReportCandidate& candidate);

/// The cost of a run's instances in dollars, at spot prices or at all others.
double instance_usd(const documents::Result& run, bool spot);

/// The value of a decimal string of a result, or of a number. Not finite for "inf" and null, which stand for no price.
double amount(const Json& value);

// How many nodes a run held at each time, from the events of a result.

/// The nodes of a pool between two changes.
struct Holding {
  std::string pool;
  double from_s = 0, to_s = 0;
  int held = 0;   ///< granted and started
  int asked = 0;  ///< requested and not there yet
};

/// The holdings of a run, ordered by their start. Times at which a pool has neither held nor asked
/// nodes are left out.
std::vector<Holding> holdings_of(const documents::Result& run);

}  // namespace ganymede::report
