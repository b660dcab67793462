#include "plan/chances.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "common/random.hpp"

namespace ganymede::plan {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();
/// An interval that reaches down to 0 is read as one that reaches down to this share of the median, because a lognormal
/// value is never 0.
constexpr double kLeastShare = 1e-3;
/// Quantiles of a doubtful price over which a probability is averaged.
constexpr int kPriceQuantiles = 64;

/// An Uncertain as a distribution: its median, and the standard deviations of its logarithm below and above that.
class TwoPiece {
 public:
  explicit TwoPiece(const Uncertain& value)
      : least_(std::clamp(value.least, 0.0, std::max(0.0, value.median))), median_(value.median - least_) {
    if (median_ <= 0) return;
    const double low = std::max(value.low - least_, kLeastShare * median_), high = value.high - least_;
    if (low < median_) below_ = portable_log(median_ / low) / value.deviations;
    if (high > median_) above_ = portable_log(high / median_) / value.deviations;
  }

  double at(double z) const { return least_ + median_ * portable_exp(z * (z < 0 ? below_ : above_)); }

  double deviations_of(double limit) const { return deviations_above(limit - least_); }

  double mean_above(double limit) const {
    return std::max(0.0, least_ - limit) + mean_of_rest_above(std::max(0.0, limit - least_));
  }

 private:
  double deviations_above(double limit) const {
    if (limit <= 0) return median_ <= limit ? kInfinite : -kInfinite;
    const double side = limit < median_ ? below_ : above_;
    if (median_ <= 0 || side == 0) return limit >= median_ ? kInfinite : -kInfinite;
    return portable_log(limit / median_) / side;
  }

  // The mean of exp(s z) over the z above c is exp(s^2 / 2) times the share of the normal distribution above c - s.
  double mean_of_rest_above(double limit) const {
    if (median_ <= 0) return 0;
    const double from = deviations_above(limit);
    const auto part = [](double s, double z) { return portable_exp(s * s / 2) * (1 - normal_below(z - s)); };
    const double upper = part(above_, std::max(0.0, from));
    const double lower = from < 0 ? part(below_, from) - part(below_, 0) : 0;
    return median_ * (upper + lower) - limit * (1 - normal_below(from));
  }

  double least_;                           // the part that is certain
  double median_, below_ = 0, above_ = 0;  // of the rest
};

/// Standard deviations above the median of equally likely prices: the middles of kPriceQuantiles equal shares of the
/// standard normal distribution.
std::array<double, kPriceQuantiles> price_quantiles() {
  std::array<double, kPriceQuantiles> quantiles{};
  for (int i = 0; i < kPriceQuantiles; ++i)
    quantiles.at(static_cast<std::size_t>(i)) = normal_quantile((i + 0.5) / kPriceQuantiles);
  return quantiles;
}

}  // namespace

double normal_below(double z) {
  if (z < 0) return 1 - normal_below(-z);
  if (z > 9) return 1;
  constexpr double kRootTwoPi = 2.5066282746310002;
  const double t = 1 / (1 + 0.2316419 * z);
  const double series =
      t * (0.319381530 + t * (-0.356563782 + t * (1.781477937 + t * (-1.821255978 + t * 1.330274429))));
  return 1 - portable_exp(-z * z / 2) / kRootTwoPi * series;
}

double Uncertain::at(double z) const { return TwoPiece(*this).at(z); }
double Uncertain::deviations_of(double limit) const { return TwoPiece(*this).deviations_of(limit); }
double Uncertain::mean_above(double limit) const { return TwoPiece(*this).mean_above(limit); }

double normal_quantile(double share) {
  double low = -9, high = 9;
  for (int step = 0; step < 60; ++step) {
    const double middle = (low + high) / 2;
    (normal_below(middle) < share ? low : high) = middle;
  }
  return high;
}

double quantile_of(std::span<const Uncertain> runs, double share) {
  const std::vector<TwoPiece> values(runs.begin(), runs.end());
  double low = 0, high = 0;
  for (const TwoPiece& value : values) high = std::max(high, value.at(9));
  for (int step = 0; step < 60; ++step) {
    const double middle = (low + high) / 2;
    double below = 0;
    for (const TwoPiece& value : values) below += normal_below(value.deviations_of(middle));
    (below < share * static_cast<double>(values.size()) ? low : high) = middle;
  }
  return high;
}

double chance_of(const RunChances& run, std::optional<double> deadline_s, std::optional<double> budget_usd) {
  const double in_time = deadline_s ? run.time_s.deviations_of(*deadline_s) : kInfinite;
  if (!budget_usd) return normal_below(in_time);
  if (run.price.low == run.price.high) return normal_below(std::min(in_time, run.usd.deviations_of(*budget_usd)));
  static const auto kQuantiles = price_quantiles();
  const TwoPiece usd(run.usd), price(run.price);
  double sum = 0;
  for (const double z : kQuantiles)
    sum += normal_below(std::min(in_time, usd.deviations_of(*budget_usd / price.at(z))));
  return sum / kPriceQuantiles;
}

double expected(std::span<const Uncertain> runs) {
  double sum = 0;
  for (const Uncertain& run : runs) sum += run.mean_above(0);
  return sum / static_cast<double>(runs.size());
}

double tail_mean(std::span<const Uncertain> runs) {
  const std::vector<TwoPiece> values(runs.begin(), runs.end());
  double low = 0, high = 0;
  for (const TwoPiece& value : values) high = std::max(high, value.at(kOf95));
  // The value that the worst tenth exceeds is the minimum, and near it the sum hardly depends on it.
  for (int i = 0; i < 30; ++i) {
    const double middle = (low + high) / 2;
    double above = 0;
    for (const TwoPiece& value : values) above += 1 - normal_below(value.deviations_of(middle));
    (above > kTail * static_cast<double>(runs.size()) ? low : high) = middle;
  }
  double beyond = 0;
  for (const TwoPiece& value : values) beyond += value.mean_above(high);
  return high + beyond / kTail / static_cast<double>(runs.size());
}

std::int64_t drawn_images(const Uncertain& images, int i, int runs) {
  int stride = std::max(1, static_cast<int>(std::lround(0.618 * runs)));
  while (std::gcd(stride, runs) != 1) ++stride;
  const auto place = (runs / 2 + static_cast<std::int64_t>(i) * stride) % runs;
  const double z = normal_quantile((static_cast<double>(place) + 0.5) / runs);
  return std::max<std::int64_t>(1, std::llround(std::ceil(images.at(z))));
}

double slope_of(std::span<const double> x, std::span<const double> y) {
  const auto n = static_cast<double>(x.size());
  double mean_x = 0, mean_y = 0, xy = 0, xx = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    mean_x += x[i] / n;
    mean_y += y[i] / n;
  }
  for (std::size_t i = 0; i < x.size(); ++i) {
    xy += (x[i] - mean_x) * (y[i] - mean_y);
    xx += (x[i] - mean_x) * (x[i] - mean_x);
  }
  return xx > 0 ? xy / xx : 0;
}

}  // namespace ganymede::plan
