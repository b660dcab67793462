#pragma once
// How likely a run is to keep its goals, and what it costs on average and at worst, with seeds and all stated error
// together.
//
// A stated interval is read as the two-piece lognormal distribution whose median is the run's own value: above the
// median, the logarithm has the standard deviation that puts the upper end at the stated confidence, and below it the
// lower end. Where a part of the value is certain, such as the boot of the nodes in a time, the rest is read so. Time
// and cost of a run move together, because what makes it longer makes it dearer. A doubtful price is independent of
// both. The runs of several seeds are equally likely.

#include <cstdint>
#include <optional>
#include <span>

namespace ganymede::plan {

/// Share of the standard normal distribution below `z`, to 1e-7 (Abramowitz and Stegun, formula 26.2.17).
double normal_below(double z);

/// A value whose error is stated by an interval, read as above.
struct Uncertain {
  double median = 0, low = 0, high = 0;
  double deviations = 1.96;  ///< standard deviations from the median to each end: 1.96 if the interval holds 95 %
  double least = 0;          ///< the part that is certain: no value is lower

  /// The value at `z` standard deviations above the median.
  double at(double z) const;
  /// How many standard deviations above the median `limit` is; infinite if the value cannot reach it.
  double deviations_of(double limit) const;
  /// The mean of max(0, value - limit); the mean of the value itself if `limit` is 0.
  double mean_above(double limit) const;
};

/// One run with its errors.
struct RunChances {
  Uncertain time_s, usd;     ///< `usd` at the stated prices; its interval holds the error of the time alone
  Uncertain price{1, 1, 1};  ///< the factor by which doubtful prices change the cost
};

/// Standard deviations from the median to the end of an interval that holds 95 % or 90 %. Intervals of measured steps
/// hold 95 %. Those of predicted steps were fitted to hold 90 % of published measurements (docs/model.md).
inline constexpr double kOf95 = 1.959964, kOf90 = 1.644854;

/// The probability that the run takes at most `deadline_s` and costs at most `budget_usd`; a goal that is not set is
/// always met.
double chance_of(const RunChances& run, std::optional<double> deadline_s, std::optional<double> budget_usd);

/// The standard deviations above its median below which the normal distribution has this share, from 0 to 1 without
/// its ends.
double normal_quantile(double share);

/// The value below which this share of all outcomes of the runs is; there is at least one run.
double quantile_of(std::span<const Uncertain> runs, double share);

/// The mean over the runs, which must be at least one.
double expected(std::span<const Uncertain> runs);

/// Share of the outcomes that tail_mean() averages: the worst tenth.
inline constexpr double kTail = 0.1;
/// The mean of the worst tenth of all outcomes of the runs: the conditional value at risk at 90 %, as the minimum over
/// v of v + E[max(0, X - v)] / 0.1 (Rockafellar and Uryasev, "Optimization of Conditional Value-at-Risk", Journal of
/// Risk 2, 2000, theorem 1).
double tail_mean(std::span<const Uncertain> runs);

/// The images of a training that gets to the FID: those of run `i` of `runs`, which are equal shares of what is known
/// of them. The first run's are the median's. The others follow at a distance that has no common divisor with the
/// number of runs, so that the first few runs already spread over all; and those of one seed, a fifth of the runs
/// apart, too, so that luck with nodes does not go with images.
std::int64_t drawn_images(const Uncertain& images, int i, int runs);

/// The slope of the straight line through the points (x, y) with the least squares; 0 if all x are equal.
double slope_of(std::span<const double> x, std::span<const double> y);

}  // namespace ganymede::plan
