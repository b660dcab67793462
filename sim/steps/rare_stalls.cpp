#include "sim/steps/rare_stalls.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <numeric>

namespace ganymede::sim {
namespace {

constexpr double kStallDeviations = 10;
constexpr double kDeviationOverMad = 1.4826;  // of a normal distribution: standard over median absolute deviation
constexpr double kLongerThanMedian = 1.5;
constexpr double kRareShare = 0.02;
constexpr double kTailShare = 0.1;
constexpr double kMaxShape = 0.45;  // tails have no variance from 0.5 on

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

void copy_row(calibration::StepModel& model, std::size_t from, std::size_t to) {
  for (auto& phase : model.phases)
    for (auto* times : {&phase.gap_s, &phase.device_s, &phase.host_s}) (*times)[to] = (*times)[from];
  model.tail_s[to] = model.tail_s[from];
}

double power(double base, double exponent) { return base <= 0 ? 0 : portable_exp(exponent * portable_log(base)); }

}  // namespace

// With values d_1 <= … <= d_k, each with probability p, the longest of `workers` is at most d_i with probability
// (1 - (k - i) p)^workers.
RareStalls::Moments RareStalls::longest(std::size_t workers, double per) const {
  Moments moments;
  const double p = per / steps;
  const auto count = static_cast<double>(extra_s.size());
  const auto at_most = [&](double i) { return power(1 - (count - i) * p, static_cast<double>(workers)); };
  for (std::size_t i = 0; i < extra_s.size(); ++i) {
    const double probability = at_most(static_cast<double>(i) + 1) - at_most(static_cast<double>(i));
    moments.mean += probability * extra_s[i];
    moments.square += probability * extra_s[i] * extra_s[i];
  }
  return moments;
}

double RareStalls::draw(RandomStream& random) const {
  if (extra_s.empty()) return 0;
  const double place = random.uniform() * steps;
  return place < static_cast<double>(extra_s.size()) ? extra_s[static_cast<std::size_t>(place)] : 0;
}

RareStalls take_rare_stalls(calibration::StepModel& model) {
  RareStalls stalls;
  stalls.steps = static_cast<double>(std::max<std::size_t>(1, model.samples));
  std::vector<double> times;
  for (std::size_t i = 0; i < model.samples; ++i) times.push_back(model.step_s(i));
  if (times.size() < 2) return stalls;
  const double middle = median(times);
  std::vector<double> deviations;
  for (const double time : times) deviations.push_back(std::abs(time - middle));
  const double limit =
      std::max(middle + kStallDeviations * kDeviationOverMad * median(deviations), kLongerThanMedian * middle);
  std::vector<std::size_t> rows;
  for (std::size_t i = 0; i < times.size(); ++i)
    if (times[i] > limit) rows.push_back(i);
  if (rows.empty() || static_cast<double>(rows.size()) > kRareShare * stalls.steps) return stalls;
  for (const std::size_t row : rows) {
    // The nearest everyday step before it, or after it at the trace's start.
    std::size_t other = row;
    while (other > 0 && times[other] > limit) --other;
    while (times[other] > limit) ++other;
    stalls.extra_s.push_back(times[row] - times[other]);
    copy_row(model, other, row);
  }
  std::sort(stalls.extra_s.begin(), stalls.extra_s.end());
  return stalls;
}

JitterTail fit_tail(const calibration::StepModel& model) {
  assert(model.samples >= 50);
  std::vector<std::pair<double, std::size_t>> times;
  for (std::size_t i = 0; i < model.samples; ++i) times.emplace_back(model.step_s(i), i);
  std::sort(times.begin(), times.end());
  const auto beyond = static_cast<std::size_t>(kTailShare * static_cast<double>(times.size()));
  const std::size_t at = times.size() - beyond - 1;
  JitterTail tail;
  tail.threshold_s = times[at].first;
  tail.base_row = times[at].second;
  tail.is_beyond.assign(model.samples, false);
  double mean = 0, weighted = 0;
  for (std::size_t j = 0; j < beyond; ++j) {
    const auto& [time, row] = times[at + 1 + j];
    tail.is_beyond[row] = true;
    const double share = (static_cast<double>(j) + 1 - 0.35) / static_cast<double>(beyond);
    mean += (time - tail.threshold_s) / static_cast<double>(beyond);
    weighted += (1 - share) * (time - tail.threshold_s) / static_cast<double>(beyond);
  }
  const double denominator = mean - 2 * weighted;
  if (mean <= 0) return tail;
  if (denominator <= 0) {  // lighter than any tail of the family; the exponential tail overestimates it
    tail.scale = mean;
    return tail;
  }
  tail.shape = std::clamp(2 - mean / denominator, -0.5, kMaxShape);
  tail.scale = mean * (1 - tail.shape);  // keeps the mean
  return tail;
}

double JitterTail::beyond(RandomStream& random) const {
  const double exponential = random.exponential();
  if (std::abs(shape) < 1e-9) return scale * exponential;
  return scale / shape * (portable_exp(shape * exponential) - 1);
}

}  // namespace ganymede::sim
