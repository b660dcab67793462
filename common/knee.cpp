#include "common/knee.hpp"

#include "common/random.hpp"

namespace ganymede {
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
