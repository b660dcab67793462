#pragma once
// Means of autocorrelated measurements and how far to trust them.

#include <cstddef>
#include <span>

#include "common/statistics.hpp"

namespace ganymede {

/// A mean with the half-width of its 95 % confidence interval by batch means: the series is cut into blocks long enough
/// to be nearly independent, and the spread of their means is what counts, corrected for what neighbouring blocks still
/// share. Treating the steps of a trace as independent draws instead makes intervals that hold about half as often as
/// they say; without the correction 93 % where steps follow each other as AR(1) with 0.8, 89 % with 0.9.
struct BlockMean {
  double mean = 0;
  double half_width =
      0;  ///< Student's t times the corrected standard error; equal to the mean when there are too few values to tell
  double block_deviation = 0;  ///< standard deviation of the block means
  std::size_t blocks = 0;
  std::size_t block_length = 0;
};

/// Of at least one value. Blocks have `block_length` values (fewer where there are fewer than four blocks of them); a
/// rest at the end counts for the mean only.
BlockMean block_mean(std::span<const double> values, std::size_t block_length);

/// Steps in a block: longer than the correlations seen in step times of the CPU kernel (scheduler and frequency effects
/// fade within about ten steps), short enough to leave a 300-step trace a dozen blocks.
inline constexpr std::size_t kBlockSteps = 25;

/// sqrt(a² + b²), the half-width of two independent errors together; std::hypot's last digit is the C library's own.
double in_quadrature(double a, double b);

/// Two-sided 95 % quantile of Student's t distribution.
double student_t95(std::size_t degrees_of_freedom);

}  // namespace ganymede
