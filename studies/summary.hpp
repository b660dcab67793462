#pragma once
// What many runs say together: distributions over seeds, and which policy is better by more than the noise.

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace ganymede {

/// What a summary needs to know of a run.
struct RunFacts {
  /// Platform, allocation, scheme …: the result's "run" without its policy and the GPUs that it came to hold, with
  /// those that it asked for in each node; as JSON.
  std::string place;
  std::string policy;
  std::uint64_t seed = 0;
  double time_s = 0, time_low_s = 0, time_high_s = 0;  ///< with the ends of its interval
  double usd = 0, usd_low = 0, usd_high = 0;           ///< likewise
  double gpu_hours = 0, kg_co2e = 0;
  double losses = 0, lost_training_s = 0;
  bool met = true;
};
/// Those of a `ganymede.result/1`; the library's exception where one of them is missing or of another type.
RunFacts facts_of(const nlohmann::ordered_json& run);

struct Summary {
  /// Runs that differ in their seed alone: number, median, 5th and 95th percentile of time, cost, GPU-hours and carbon
  /// (0 where it is not known), the intervals of time and cost (seed_quantiles), mean losses and share of met goals.
  nlohmann::ordered_json groups;
  /// Where several policies ran on the same platform, allocation and scheme: for each of these measures the policies
  /// from best to worst by median, each compared with `fixed` (else with the best) on the seeds that both finished, six
  /// at least: the relative difference of the medians with its 95 % interval (a paired bootstrap), and whether that
  /// excludes 0; and the mean of the relative differences with its own.
  nlohmann::ordered_json rankings;
  /// The first run of each group.
  std::vector<std::size_t> firsts;
};
Summary summarize(const std::vector<RunFacts>& runs);

}  // namespace ganymede
