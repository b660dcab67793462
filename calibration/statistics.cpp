#include "calibration/statistics.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>

namespace ganymede::calibration {

double student_t95(std::size_t degrees_of_freedom) {
  constexpr std::array<double, 30> kTable = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
                                             2.201,  2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
                                             2.080,  2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042};
  assert(degrees_of_freedom >= 1);
  if (degrees_of_freedom <= kTable.size()) return kTable[degrees_of_freedom - 1];
  // Beyond the table, the first term of the expansion in 1 / degrees_of_freedom is exact to three digits.
  constexpr double kNormal = 1.95996;
  return kNormal * (1 + (kNormal * kNormal + 1) / (4 * static_cast<double>(degrees_of_freedom)));
}

double in_quadrature(double a, double b) { return std::sqrt(a * a + b * b); }

namespace {

/// The least number of values from which their correlation is estimated.
constexpr std::size_t kMinValuesForCorrelation = 40;
constexpr double kMaxCorrelation = 0.99;
/// The least denominator of the correction below: with few and strongly correlated blocks it would approach zero.
constexpr double kMinOwnShare = 0.1;

/// The factor between the variance of the mean and the one that independent blocks would give: values after the end of
/// a block still depend on those before it. It is derived for a first-order autoregression whose coefficient is the
/// correlation r of neighbours. The sum over a block of b values then has the variance
/// b (1 + r) / (1 - r) - 2 r (1 - r^b) / (1 - r)^2, the covariance r (1 - r^b)^2 / (1 - r)^2 with the next block, and
/// with each further block r^b times the covariance with the block before.
double variance_inflation(std::span<const double> values, double mean, std::size_t block_length, std::size_t blocks) {
  const auto count = static_cast<double>(values.size());
  if (values.size() < kMinValuesForCorrelation) return 1;
  double square = 0, neighbours = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    square += (values[i] - mean) * (values[i] - mean);
    if (i > 0) neighbours += (values[i] - mean) * (values[i - 1] - mean);
  }
  if (square <= 0) return 1;
  double r = neighbours / square;
  r += (1 + 3 * r) / count;  // a short series underestimates its correlation (Kendall 1954)
  if (r <= 0) return 1;
  r = std::min(r, kMaxCorrelation);
  double power = 1;  // r^b
  for (std::size_t i = 0; i < block_length; ++i) power *= r;
  const double variance =
      static_cast<double>(block_length) * (1 + r) / (1 - r) - 2 * r * (1 - power) / ((1 - r) * (1 - r));
  const double with_next = r * (1 - power) * (1 - power) / ((1 - r) * (1 - r)) / variance;
  const double with_all = with_next / (1 - power);
  // Correlated blocks deviate less from their common mean than independent blocks; `own` corrects for that.
  const double own = std::max(kMinOwnShare, 1 - 2 * with_all / static_cast<double>(blocks));
  return (1 + 2 * with_all) / own;
}

}  // namespace

BlockMean block_mean(std::span<const double> values, std::size_t block_length) {
  assert(!values.empty() && block_length > 0);
  BlockMean result;
  for (const double value : values) result.mean += value / static_cast<double>(values.size());
  result.block_length = std::clamp<std::size_t>(values.size() / 4, 1, block_length);
  result.blocks = values.size() / result.block_length;
  if (result.blocks < 2) {
    result.half_width = result.mean;
    return result;
  }
  double square = 0;
  for (std::size_t block = 0; block < result.blocks; ++block) {
    double sum = 0;
    for (const double value : values.subspan(block * result.block_length, result.block_length)) sum += value;
    const double deviation = sum / static_cast<double>(result.block_length) - result.mean;
    square += deviation * deviation;
  }
  result.block_deviation = std::sqrt(square / static_cast<double>(result.blocks - 1));
  result.half_width = student_t95(result.blocks - 1) * result.block_deviation *
                      std::sqrt(variance_inflation(values, result.mean, result.block_length, result.blocks) /
                                static_cast<double>(result.blocks));
  return result;
}

}  // namespace ganymede::calibration
