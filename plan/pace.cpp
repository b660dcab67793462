#include "plan/pace.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace ganymede::plan {
namespace {

/// Parts of equal length that a log is cut into; their means scatter less than steps that depend on each other.
constexpr std::size_t kMostBatches = 20;
/// A batch that takes so many times the usual contains a stop.
constexpr double kStop = 2;
/// Stops whose lengths differ by less than this factor recur.
constexpr double kAlike = 1.5;
/// A change for good: so many batches on either side, whose means differ by that share and so many standard errors.
constexpr std::size_t kSideOfChange = 3;
constexpr double kChange = 0.05, kSureChange = 8;
/// A drift needs so many batches, and a slope of more than three standard errors; beyond, it counts in part.
constexpr std::size_t kDriftBatches = 5;
constexpr double kDriftSquare = 9;
/// The least share of the pace so far that a drift may lead to.
constexpr double kLeastOfPace = 0.3;

struct Batch {
  double from, to, steps, seconds;
  double step_s() const { return seconds / steps; }
};

std::vector<Batch> batches_of(const std::vector<Stretch>& stretches) {
  // Allocation, compilation and the choice of algorithms fall into the first steps.
  const std::size_t first = stretches.size() > kMostBatches ? 1 : 0;
  double all = 0, before = 0;
  for (std::size_t i = first; i < stretches.size(); ++i) all += stretches[i].to - stretches[i].from;
  const std::size_t most = std::min(kMostBatches, stretches.size() - first);
  std::vector<Batch> out;
  std::size_t last = most;
  for (std::size_t i = first; i < stretches.size(); ++i) {
    const Stretch& part = stretches[i];
    const double steps = part.to - part.from;
    const double middle = (before + steps / 2) / all;
    const auto into = std::min(most - 1, static_cast<std::size_t>(middle * static_cast<double>(most)));
    if (into != last) out.push_back({part.from, part.to, 0, 0});
    last = into;
    out.back() = {out.back().from, part.to, out.back().steps + steps, out.back().seconds + part.seconds};
    before += steps;
  }
  return out;
}

/// Gives a batch with a stop the usual pace, unless stops of this length recur.
void leave_out_stops(std::vector<Batch>& batches) {
  if (batches.size() < 3) return;
  std::vector<double> paces;
  for (const Batch& batch : batches) paces.push_back(batch.step_s());
  std::sort(paces.begin(), paces.end());
  const double usual = (paces[(paces.size() - 1) / 2] + paces[paces.size() / 2]) / 2;
  if (usual <= 0) return;  // the clock's steps are longer than the lines are apart
  double longest = 0, shortest = std::numeric_limits<double>::infinity();
  int stops = 0;
  for (const Batch& batch : batches) {
    if (batch.step_s() <= kStop * usual) continue;
    const double lost = batch.seconds - usual * batch.steps;
    longest = std::max(longest, lost);
    shortest = std::min(shortest, lost);
    ++stops;
  }
  if (stops > 1 && longest < kAlike * shortest) return;
  for (Batch& batch : batches)
    if (batch.step_s() > kStop * usual) batch.seconds = usual * batch.steps;
}

/// Leaves out the batches before the last change for good.
void leave_out_before_change(std::vector<Batch>& batches) {
  while (batches.size() >= 2 * kSideOfChange) {
    std::size_t at = 0;
    double least = std::numeric_limits<double>::infinity(), before = 0, after = 0;
    const auto mean = [&](std::size_t begin, std::size_t end) {
      double sum = 0;
      for (std::size_t i = begin; i < end; ++i) sum += batches[i].step_s();
      return sum / static_cast<double>(end - begin);
    };
    for (std::size_t i = kSideOfChange; i + kSideOfChange <= batches.size(); ++i) {
      const double left = mean(0, i), right = mean(i, batches.size());
      double squares = 0;
      for (std::size_t k = 0; k < batches.size(); ++k)
        squares += std::pow(batches[k].step_s() - (k < i ? left : right), 2);
      if (squares < least) {
        at = i;
        least = squares;
        before = left;
        after = right;
      }
    }
    const auto count = static_cast<double>(batches.size()), head = static_cast<double>(at);
    const double error = std::sqrt(least / (count - 2) * (1 / head + 1 / (count - head)));
    const double off = std::abs(after - before);
    if (off <= kChange * before || off <= kSureChange * error) return;
    batches.erase(batches.begin(), batches.begin() + static_cast<std::ptrdiff_t>(at));
  }
}

/// Mean of the logarithm of the steps from `from` to `to`.
double mean_log(double from, double to) {
  const auto integral = [](double x) { return x > 0 ? x * std::log(x) - x : 0; };
  return (integral(to) - integral(from)) / (to - from);
}

/// A line through the paces of batches, relative to `mean`, against the logarithm of the steps.
struct Drift {
  double slope = 0, variance = 0;  ///< of the slope
  double middle = 0;               ///< mean logarithm of the steps
  double unexplained = 0;          ///< mean square of what the line leaves
  bool sure() const { return slope * slope > kDriftSquare * variance; }
};

Drift drift_of(const std::vector<Batch>& batches, std::size_t first, double mean) {
  double steps = 0, off = 0, spread = 0, product = 0, rest = 0;
  Drift drift;
  for (std::size_t i = first; i < batches.size(); ++i) {
    const Batch& batch = batches[i];
    steps += batch.steps;
    off += batch.seconds / mean - batch.steps;
    drift.middle += batch.steps * mean_log(batch.from, batch.to);
  }
  drift.middle /= steps;
  off /= steps;
  const auto of = [&](const Batch& batch) {
    return std::pair(mean_log(batch.from, batch.to) - drift.middle, batch.step_s() / mean - 1 - off);
  };
  for (std::size_t i = first; i < batches.size(); ++i) {
    const auto [x, y] = of(batches[i]);
    spread += batches[i].steps * x * x;
    product += batches[i].steps * x * y;
  }
  if (spread <= 0) return drift;
  drift.slope = product / spread;
  for (std::size_t i = first; i < batches.size(); ++i) {
    const auto [x, y] = of(batches[i]);
    rest += batches[i].steps * std::pow(y - drift.slope * x, 2);
  }
  drift.unexplained = rest / steps;
  drift.variance = rest / static_cast<double>(batches.size() - first - 2) / spread;
  return drift;
}

}  // namespace

Pace pace(const std::vector<Stretch>& stretches, double left) {
  std::vector<Batch> batches = batches_of(stretches);
  leave_out_stops(batches);
  leave_out_before_change(batches);
  const auto count = static_cast<double>(batches.size());
  double steps = 0, seconds = 0, squares = 0;
  for (const Batch& batch : batches) {
    steps += batch.steps;
    seconds += batch.seconds;
  }
  const double mean = seconds / steps;
  if (batches.size() < 2 || mean <= 0) return {mean, std::numeric_limits<double>::infinity()};
  for (const Batch& batch : batches) squares += std::pow(batch.step_s() / mean - 1, 2);
  const Pace steady{mean, std::sqrt(squares / (count - 1) / count)};
  if (batches.size() < kDriftBatches || left <= 0) return steady;
  const Drift drift = drift_of(batches, 0, mean), later = drift_of(batches, 1, mean);
  // A slow first batch alone is a warm-up and no drift.
  if (!drift.sure() || !later.sure() || drift.slope * later.slope <= 0) return steady;
  const double end = batches.back().to, ahead = mean_log(end, end + left) - drift.middle;
  const double part = 1 - kDriftSquare * drift.variance / (drift.slope * drift.slope);
  return {mean * std::max(kLeastOfPace, 1 + part * drift.slope * ahead),
          std::sqrt(drift.unexplained / (count - 2) + drift.variance * ahead * ahead)};
}

}  // namespace ganymede::plan
