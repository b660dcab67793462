#include "calibration/link_fit.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <utility>

#include "common/units.hpp"

namespace ganymede::calibration {
namespace {

constexpr double kMinLatency = 1e-9, kMaxLatency = 10;       // seconds
constexpr double kMinBandwidth = 1e3, kMaxBandwidth = 1e15;  // bytes a second
constexpr double kPrecision = 1e-7;                          // relative
constexpr int kMaxAlternations = 40;
constexpr double kMeetsWithin = 0.02;  // relative

/// Finds by bisection of the logarithm where a rising function reaches `target` between `low` and `high`.
template <class Function>
double solve(double low, double high, double target, const Function& rising) {
  while (high / low > 1 + kPrecision) {
    const double middle = std::sqrt(low * high);
    (rising(middle) < target ? low : high) = middle;
  }
  return std::sqrt(low * high);
}

/// Finds a bandwidth near `stated` at which `time` is `target`: goes up or down from it in steps until the time has
/// passed the target, and bisects the last step.
template <class Function>
double nearest_bandwidth(double stated, double target, const Function& time) {
  constexpr double kStep = 1.25;
  const bool up = time(stated) > target;
  double from = stated, to = stated;
  do {
    from = to;
    to = std::clamp(up ? to * kStep : to / kStep, kMinBandwidth, kMaxBandwidth);
  } while (to > kMinBandwidth && to < kMaxBandwidth && (time(to) > target) == up);
  return 1 / solve(1 / std::max(from, to), 1 / std::min(from, to), target,
                   [&](double inverse) { return time(1 / inverse); });
}

/// Where even no latency at all leaves the smallest size too slow, no bandwidth meets both sizes. Returns the one, from
/// that which meets the largest size upwards, at which the squares of the logarithms of both errors have the least sum.
/// `off` returns predicted over measured of the smallest and the largest size.
template <class Function>
double between_both(double low, const Function& off) {
  constexpr double kTolerance = 1e-5, kWidest = 4;
  const auto squares = [&](double logarithm) {
    const auto [small, large] = off(std::exp(logarithm));
    return std::log(small) * std::log(small) + std::log(large) * std::log(large);
  };
  if (off(low).first <= 1 + kMeetsWithin) return low;
  double from = std::log(low), to = std::log(std::min(kWidest * low, kMaxBandwidth));
  while (to - from > kTolerance) {
    const double third = (to - from) / 3;
    if (squares(from + third) <= squares(to - third))
      to -= third;
    else
      from += third;
  }
  constexpr double kWorthIt = 0.99;  // where the bandwidth hardly changes the smallest size, it stays
  return squares(from) < kWorthIt * squares(std::log(low)) ? std::exp(from) : low;
}

}  // namespace

std::vector<RangeError> errors_of(const std::vector<FittedSample>& samples) {
  constexpr std::int64_t kKiB = 1024, kMiB = 1024 * kKiB, kEnd = std::int64_t{1} << 62;
  struct Range {
    const char* name;
    std::int64_t low, high;
  };
  constexpr std::array<Range, 3> kRanges{
      {{"below 64 KiB", 0, 64 * kKiB}, {"64 KiB to 1 MiB", 64 * kKiB, kMiB}, {"from 1 MiB", kMiB, kEnd}}};
  std::vector<RangeError> errors;
  for (const auto& [name, low, high] : kRanges) {
    RangeError error{name, 0, 0, 0};
    for (const FittedSample& sample : samples) {
      if (sample.fitted || sample.measured.bytes < low || sample.measured.bytes >= high) continue;
      ++error.samples;
      error.model += std::abs(std::log(sample.predicted / sample.measured.time));
      error.line += std::abs(std::log(sample.line / sample.measured.time));
    }
    if (error.samples > 0) {
      error.model = std::expm1(error.model / error.samples);
      error.line = std::expm1(error.line / error.samples);
    }
    errors.push_back(error);
  }
  return errors;
}

LinkFit fit_links(std::span<const CollectiveSample> samples, const PredictCollective& predict, StatedLink stated) {
  assert(samples.size() >= 2);
  const CollectiveSample &small = samples.front(), &large = samples.back();
  double latency = 0, bandwidth = stated.bandwidth.si;
  const auto time = [&](double l, double b, std::int64_t bytes) {
    return predict(Seconds{l}, BytesPerSecond{b}, bytes).si;
  };
  // Each fitted time depends a little on the other parameter, so both are solved in turn until neither changes.
  for (int i = 0; i < kMaxAlternations; ++i) {
    const double before_latency = latency, before_bandwidth = bandwidth;
    if (!stated.keep)
      bandwidth = nearest_bandwidth(stated.bandwidth.si, large.time.si,
                                    [&](double candidate) { return time(latency, candidate, large.bytes); });
    latency =
        stated.latency ? stated.latency->si
        : time(0, bandwidth, small.bytes) >= small.time.si
            ? 0
            : solve(kMinLatency, kMaxLatency, small.time.si, [&](double l) { return time(l, bandwidth, small.bytes); });
    if (std::abs(latency - before_latency) <= 2 * kPrecision * latency &&
        std::abs(bandwidth - before_bandwidth) <= 2 * kPrecision * bandwidth)
      break;
  }

  if (!stated.keep && !stated.latency && latency == 0)
    bandwidth = between_both(bandwidth, [&](double candidate) {
      return std::pair{time(0, candidate, small.bytes) / small.time.si,
                       time(0, candidate, large.bytes) / large.time.si};
    });

  LinkFit fit{Seconds{latency}, BytesPerSecond{bandwidth}, !stated.latency, !stated.keep, true, {}, {}};
  const double slope = (large.time - small.time).si / static_cast<double>(large.bytes - small.bytes);
  for (const CollectiveSample& sample : samples) {
    const bool fitted = (!stated.latency && &sample == &small) || (!stated.keep && &sample == &large);
    const Seconds predicted = predict(fit.latency, fit.bandwidth, sample.bytes);
    const Seconds line{small.time.si + slope * static_cast<double>(sample.bytes - small.bytes)};
    fit.samples.push_back({sample, predicted, line, fitted});
    if (fitted && std::abs(predicted / sample.time - 1) > kMeetsWithin) fit.meets_ends = false;
  }
  if (fit.samples.back().predicted > large.time * (1 + kMeetsWithin)) {
    const double no_cost = time(0, kMaxBandwidth, large.bytes);
    if (no_cost > large.time.si * (1 + kMeetsWithin)) fit.predicted_at_no_cost = Seconds{no_cost};
  }
  return fit;
}

}  // namespace ganymede::calibration
