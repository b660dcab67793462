#pragma once
// What a report compares: each thing that was simulated, whatever kind of document it comes from, in one form.

#include <array>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "sim/ledger/ledger.hpp"

namespace ganymede {

/// A middle and two ends. Not finite: unknown (a cost without a price).
struct Estimate {
  double middle = 0, low = 0, high = 0;
};

/// A run, runs that differ in their seed alone, or a candidate of a plan.
struct ReportCandidate {
  std::string infrastructure;  ///< provider, region and market where it is not on demand
  std::string rented;          ///< "2 x p3.2xlarge"
  std::string market, gpu, scheme, policy;
  /// The most that it held; a policy of its own may have held fewer, and in another run more.
  int gpus = 0;
  int fewest_gpus = 0;
  int runs = 1;
  /// Of one run its value and stated error; of several seeds their median and interval (seed_quantiles), as in plans.
  Estimate time_s, usd;
  /// What the Pareto set compares: usd.middle; of a plan's candidate its cost with doubtful prices at their high ends,
  /// not finite where the plan does not rank it, as it misses the goals.
  double ranked_usd = 0;
  /// Parts of usd.middle that scale with prices of instances: at spot prices, at others. Of several runs 0: each has
  /// its own, instance_usd().
  double spot_usd = 0, instance_usd = 0;
  double images_per_s = 0;                            ///< while training; of a plan's candidate over its whole time
  double gpu_busy = 0;                                ///< share
  double kwh, kg_co2e;                                ///< not finite: unknown
  double losses = 0;                                  ///< nodes, mean
  double met_share = 1;                               ///< of runs that meet the goals
  bool chosen = false;                                ///< by the plan
  bool risk_assumed = false, price_doubtful = false;  ///< by the plan
  bool scales = true;  ///< its GPUs stay what they are: it is one point of a scaling curve
  bool has_ledger = false;
  std::array<double, kGpuUseNames.size()> gpu_seconds{};  ///< mean over the runs
  /// Of one run, or the one of median time: what the report shows in detail. Points into the document; of a plan's
  /// candidates null.
  const nlohmann::json* run = nullptr;
  std::vector<const nlohmann::json*> of_runs;  ///< all of them
};

/// Of a `ganymede.result/1` one, of a `ganymede.sweep/1` one a configuration, of a `ganymede.plan/1` one a simulated
/// candidate; in the document's order. The document must outlive them.
std::vector<ReportCandidate> candidates_of(const nlohmann::json& document);

/// Indices of those that no other beats in both time and ranked_usd, the fastest first: of a plan its own rule and
/// order. Candidates without a price are none.
std::vector<std::size_t> pareto_of(const std::vector<ReportCandidate>& candidates);

/// "8 x V100", or "4 to 8 x V100".
std::string gpus_of(const ReportCandidate& of);

/// What the instances of a run cost, at spot prices or at others.
double instance_usd(const nlohmann::json& run, bool spot);

/// A decimal string of a result, or a number; not finite for "inf" and null, which have no price.
double amount(const nlohmann::json& value);

}  // namespace ganymede
