#pragma once
// Summaries of many runs: distributions over seeds, and which policy is better by more than chance.

#include <compare>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/json_value.hpp"

namespace ganymede::studies {

/// The common properties of runs that differ only in their seed.
struct RunGroup {
  /// The result's "run" as JSON (platform, allocation, scheme, …), without the policy and the number of GPUs that it
  /// held, but with the GPUs per node that were asked for. Runs with the same place are compared.
  std::string place;
  std::string policy;
  auto operator<=>(const RunGroup&) const = default;
};

/// The facts about a run that a summary needs.
struct RunFacts {
  std::shared_ptr<const RunGroup> group;  ///< one object may serve all runs of a group
  std::uint64_t seed = 0;
  double time_s = 0, time_low_s = 0, time_high_s = 0;  ///< time, and the ends of its interval
  double usd = 0, usd_low = 0, usd_high = 0;           ///< cost, and the ends of its interval
  double gpu_hours = 0, kg_co2e = 0;
  double losses = 0, lost_training_s = 0;
  bool met = true;
};

/// Reads the facts of a `ganymede.result/1`. Throws the JSON library's exception if one is missing or of another type.
RunFacts facts_of(const OrderedJson& run);

/// The facts as one line of cells, separated by tabs, with all digits; JSON escapes tabs and line breaks.
std::string facts_line(const RunFacts& facts);
/// Reads what facts_line() wrote from the beginning of `text`, and moves `text` behind it and one more tab.
RunFacts read_facts(std::string_view& text);

struct Summary {
  /// One entry for the runs that differ only in their seed: their number; median, 5th and 95th percentile of time,
  /// cost, GPU-hours and carbon (0 if it is not known); the intervals of time and cost (seed_quantiles()); mean losses;
  /// the share of runs that met the goals.
  OrderedJson groups;
  /// One entry for each place on which several policies ran: for each of these quantities, the policies from best to
  /// worst by median. Each is compared with `fixed` (or with the best, if `fixed` is not among them) on the seeds that
  /// both finished, if these are at least six: the relative difference of the medians with its 95 % interval (a paired
  /// bootstrap), whether that interval excludes 0, and the mean of the relative differences with its interval.
  OrderedJson rankings;
  /// Index of the first run of each group.
  std::vector<std::size_t> firsts;
};

Summary summarize(const std::vector<RunFacts>& runs);

}  // namespace ganymede::studies
