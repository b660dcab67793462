#include "calibration/kernels/error_of_sums.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace ganymede::calibration {

double error_of_sums(const std::vector<std::pair<double, double>>& kernels, RandomStream& random) {
  std::vector<std::size_t> order(kernels.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const std::size_t count = std::min(kSumOf, kernels.size());
  double errors = 0;
  for (std::size_t sum = 0; sum < kSums; ++sum) {
    double predicted = 0, measured = 0;
    for (std::size_t i = 0; i < count; ++i) {
      std::swap(order[i], order[i + random.below(order.size() - i)]);
      predicted += kernels[order[i]].first;
      measured += kernels[order[i]].second;
    }
    errors += std::abs(predicted / measured - 1);
  }
  return errors / static_cast<double>(kSums);
}

}  // namespace ganymede::calibration
