#include "common/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <vector>

#include "common/random.hpp"

namespace ganymede {

double quantile(std::span<const double> sorted, double share) {
  const double place = share * static_cast<double>(sorted.size() - 1);
  const auto low = static_cast<std::size_t>(place);
  const std::size_t high = std::min(low + 1, sorted.size() - 1);
  return sorted[low] + (place - static_cast<double>(low)) * (sorted[high] - sorted[low]);
}

SeedQuantiles seed_quantiles(std::span<const double> values, std::span<const double> lows,
                             std::span<const double> highs) {
  const auto finite = [](std::span<const double> from) {
    std::vector<double> kept;
    std::copy_if(from.begin(), from.end(), std::back_inserter(kept), [](double value) { return std::isfinite(value); });
    std::sort(kept.begin(), kept.end());
    if (kept.empty()) kept.push_back(std::numeric_limits<double>::quiet_NaN());
    return kept;
  };
  const std::vector<double> middle = finite(values);
  return {quantile(middle, 0.5), quantile(middle, 0.05), quantile(middle, 0.95), quantile(finite(lows), 0.05),
          quantile(finite(highs), 0.95)};
}

namespace {

/// Rounding may lift a point that lies on the line between the ends of a front by so much.
constexpr double kOnTheLine = 1e-9;

}  // namespace

std::size_t knee_of(std::span<const std::pair<double, double>> front) {
  const auto [fastest, dearest] = front.front();
  const auto [slowest, cheapest] = front.back();
  std::size_t knee = front.size() - 1;
  if (fastest <= 0 || cheapest <= 0) return knee;
  const double slower = portable_log(slowest / fastest), dearer = portable_log(dearest / cheapest);
  if (slower <= 0 || dearer <= 0) return knee;
  double least = 1 - kOnTheLine;
  for (std::size_t i = 0; i < front.size(); ++i) {
    const double sum =
        portable_log(front[i].first / fastest) / slower + portable_log(front[i].second / cheapest) / dearer;
    if (sum >= least) continue;
    least = sum;
    knee = i;
  }
  return knee;
}

}  // namespace ganymede
