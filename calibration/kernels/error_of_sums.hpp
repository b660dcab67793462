#pragma once
// How far sums of kernels, as steps are, are off where single kernels' errors partly cancel.

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "common/random.hpp"

namespace ganymede::calibration {

inline constexpr std::size_t kSumOf = 20;
/// Sums that are drawn for each kind and GPU; each of kSumOf different kernels, or of all if there are not more.
inline constexpr std::size_t kSums = 1000;
inline constexpr std::uint64_t kSumSeed = 1;

/// The mean of |predicted / measured - 1| of sums of kernels, given as pairs of predicted and measured seconds.
double error_of_sums(const std::vector<std::pair<double, double>>& kernels, RandomStream& random);

}  // namespace ganymede::calibration
