#pragma once
// Quantiles, and summaries of runs that differ only in their seed. Simulations, plans and reports share these
// definitions.

#include <cstddef>
#include <span>
#include <utility>

namespace ganymede {

/// The quantile of sorted values (at least one), interpolated between neighbours. `share` is from 0 to 1: 0.5 is the
/// median.
double quantile(std::span<const double> sorted, double share);

/// Summary of one quantity over runs that differ only in their seed: the median and the 5th and 95th percentile of
/// their values, and an interval from the 5th percentile of the low ends of each run's own interval to the 95th
/// percentile of the high ends.
struct SeedQuantiles {
  double median = 0, p5 = 0, p95 = 0;
  double low = 0, high = 0;
};
/// Summarizes the runs' values and the ends of their intervals. Requires at least one run. Values that are not finite
/// (a cost without a price) are left out; all members are NaN if no finite value is left.
SeedQuantiles seed_quantiles(std::span<const double> values, std::span<const double> lows,
                             std::span<const double> highs);

/// Index of the knee of a front of times and costs, all above zero, the fastest first and each cheaper than the one
/// before: the point farthest below the line between the two ends (Das, Structural Optimization 18, 1999), with
/// logarithms of time and cost, each scaled to its range in the front. The last one if no point is below the line.
std::size_t knee_of(std::span<const std::pair<double, double>> front);

}  // namespace ganymede
