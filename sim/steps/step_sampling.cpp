#include "sim/steps/step_sampling.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <utility>
#include <vector>

#include "calibration/statistics.hpp"
#include "common/units.hpp"

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

StepSampler::StepSampler(std::size_t samples, std::size_t workers, std::size_t block_length, std::uint64_t seed)
    : samples_(samples),
      block_length_(std::min(samples, block_length)),
      place_(block_length_),
      offset_(workers),
      rows_(workers),
      random_(seed, "run/step-sampler"),
      tail_random_(seed, "run/jitter-tail"),
      stall_random_(seed, "run/rare-stalls") {
  assert(samples > 0 && workers > 0 && block_length > 0);
}

void StepSampler::use_tail(JitterTail tail) {
  tail_ = std::move(tail);
  extra_s_.resize(rows_.size());
}

std::span<const std::size_t> StepSampler::next() {
  if (place_ == block_length_) {
    place_ = 0;
    first_ = random_.below(samples_ - block_length_ + 1);
    for (auto& offset : offset_) offset = random_.below(block_length_);
  }
  for (std::size_t worker = 0; worker < rows_.size(); ++worker)
    rows_[worker] = first_ + (place_ + offset_[worker]) % block_length_;
  ++place_;
  if (!stalls_.extra_s.empty()) extra_s_.resize(rows_.size());
  for (std::size_t worker = 0; worker < extra_s_.size(); ++worker) {
    extra_s_[worker] = stalls_.draw(stall_random_);
    if (!tail_ || !tail_->is_beyond[rows_[worker]]) continue;
    rows_[worker] = tail_->base_row;
    extra_s_[worker] += tail_->beyond(tail_random_);
  }
  return rows_;
}

StepSums::StepSums(std::vector<std::size_t> pool_of, std::vector<double> slowest)
    : pool_of_(std::move(pool_of)), slowest_(std::move(slowest)), pools_(slowest_.size()) {}

void StepSums::add(const StepOutcome& step, double times) {
  total_ += times * step.duration;
  for (std::size_t w = 0; w < step.workers.size(); ++w) {
    const WorkerStep& worker = step.workers[w];
    PoolStep& sum = pools_[pool_of_[w]];
    sum.compute += times * worker.compute;
    sum.exposed += times * worker.exposed_communication;
    sum.straggler += times * worker.straggler;
    sum.stall += times * worker.input_stall;
    sum.lost += times * worker.lost;
    sum.device += times * worker.device;
  }
}

void StepSums::write_mean_step(double steps, StepDistribution& out) const {
  out.mean = total_ / steps;
  out.pools = pools_;
  for (std::size_t p = 0; p < out.pools.size(); ++p) {
    PoolStep& pool = out.pools[p];
    const Seconds mean_worker = pool.compute / slowest_[p];
    pool.straggler += pool.compute - mean_worker;
    pool.compute = mean_worker;
    pool.device = pool.device / slowest_[p];
    for (Seconds* part : {&pool.compute, &pool.exposed, &pool.straggler, &pool.stall, &pool.lost, &pool.device})
      *part = *part / steps;
  }
}

namespace {

// Without jitter steps repeat once the input queue has filled. Each step then equals the step two before it: if the two
// places of the queue limit the pace, long and short steps alternate. After kEqualSteps such steps in a row, all
// further steps are taken to repeat.
constexpr int kEqualSteps = 6;
constexpr int kRounds = 64;             // to settle, and as many to count
constexpr std::size_t kMinBlocks = 30;  // effective samples behind an interval
// A block of so many steps is a mean over many draws itself, so that fewer blocks do, and more would take minutes.
constexpr std::size_t kLongBlock = 1000;
constexpr std::size_t kMinLongBlocks = 5;
constexpr std::size_t kMaxBlocks = 200;     // 5,000 steps: enough for 0.5 % of blocks that vary by 3.5 %
constexpr double kMaxMessages = 2e6;        // of a sample, beyond its first kMinBlocks: takes a few seconds
constexpr double kMaxWorkerSteps = 5e6;     // also of a sample: takes about a second
constexpr double kMaxRoundSteps = 6.4e5;    // of the rounds that settle, and of those that count, beyond two of each
constexpr std::size_t kMaxSpans = 100'000;  // of the steps that are shown

double standard_deviation(const std::vector<double>& values) {
  double mean = 0;
  double square = 0;
  for (const double value : values) mean += value / static_cast<double>(values.size());
  for (const double value : values) square += (value - mean) * (value - mean);
  return std::sqrt(square / static_cast<double>(std::max<std::size_t>(1, values.size() - 1)));
}

std::size_t min_blocks(std::size_t block_length) { return block_length < kLongBlock ? kMinBlocks : kMinLongBlocks; }

/// The largest number of blocks of a sample: as many as can be simulated in some seconds, within min_blocks() and
/// kMaxBlocks.
std::size_t max_blocks(const SamplingOptions& options, std::size_t block_length) {
  const double affordable = std::min(kMaxMessages / (options.simulated_messages + 1e-9),
                                     kMaxWorkerSteps / static_cast<double>(options.workers)) /
                            static_cast<double>(block_length);
  return static_cast<std::size_t>(
      std::clamp(affordable, static_cast<double>(min_blocks(block_length)), static_cast<double>(kMaxBlocks)));
}

/// Simulates steps that repeat recorded steps drawn by a sampler, and keeps their durations.
class SampledSteps {
 public:
  SampledSteps(StepProcess& process, const SamplingOptions& options, StepSums& sums, StepDistribution& out)
      : process_(process),
        options_(options),
        sums_(sums),
        out_(out),
        sampler_(options.samples, options.workers, calibration::kBlockSteps, options.seed) {
    if (options.tail) sampler_.use_tail(*options.tail);
    if (options.every_step) sampler_.use_stalls(options.stalls);
    // A block holds whole rounds.
    const auto cycle = static_cast<std::size_t>(process.cycle());
    block_length_ = (sampler_.block_length() + cycle - 1) / cycle * cycle;
  }

  std::size_t block_length() const { return block_length_; }
  const std::vector<double>& durations_s() const { return durations_s_; }
  calibration::BlockMean mean() const { return calibration::block_mean(durations_s_, block_length_); }

  /// Fills the input queue, which happens once in a run; these steps do not count.
  void warm_up() {
    for (std::size_t i = 0; i < block_length_; ++i) step();
  }
  void record_spans() { process_.record(&out_.spans); }
  void count_step() {
    const StepOutcome outcome = step();
    durations_s_.push_back(outcome.duration.si);
    sums_.add(outcome);
    ++out_.simulated;
    if (out_.simulated == options_.shown_steps || out_.spans.size() > kMaxSpans) process_.record(nullptr);
  }

 private:
  StepOutcome step() {
    const auto rows = sampler_.next();
    return process_.next(rows, sampler_.extra_s());
  }

  StepProcess& process_;
  const SamplingOptions& options_;
  StepSums& sums_;
  StepDistribution& out_;
  StepSampler sampler_;
  std::size_t block_length_ = 1;
  std::vector<double> durations_s_;
};

void sample_blocks(SampledSteps& steps, const SamplingOptions& options, StepDistribution& out) {
  const std::size_t limit = max_blocks(options, steps.block_length());
  for (std::size_t block = 1;; ++block) {
    for (std::size_t i = 0; i < steps.block_length(); ++i) steps.count_step();
    if (block < min_blocks(steps.block_length())) continue;
    const calibration::BlockMean mean = steps.mean();
    out.precise = mean.half_width <= options.precision * mean.mean;
    if (out.precise || block >= limit) return;
  }
}

}  // namespace

void repeat_steps(StepProcess& process, const SamplingOptions& options, bool in_rounds, StepSums& sums,
                  StepDistribution& out) {
  const std::vector<std::size_t> rows(options.workers, 0);
  const int cycle = process.cycle();
  if (in_rounds || cycle > 1) {
    const double affordable = kMaxRoundSteps / (static_cast<double>(options.workers) * cycle);
    const int rounds = static_cast<int>(std::clamp(affordable, 2.0, static_cast<double>(kRounds)));
    for (int i = 0; i < cycle * rounds; ++i) process.next(rows);
    for (int i = 0; i < cycle * rounds; ++i) sums.add(process.next(rows)), ++out.simulated;
    return sums.write_mean_step(static_cast<double>(out.simulated), out);
  }
  const std::int64_t all = std::max<std::int64_t>(options.run_steps, cycle);
  int equal = 0;
  StepOutcome before;
  StepOutcome last;
  while (out.simulated < all && equal < kEqualSteps) {
    StepOutcome next = process.next(rows);
    equal = out.simulated > 1 && std::abs(next.duration / before.duration - 1) < 1e-9 ? equal + 1 : 0;
    before = std::exchange(last, std::move(next));
    sums.add(last);
    ++out.simulated;
  }
  const std::int64_t rest = all - out.simulated;
  const std::int64_t like_last = rest / 2;
  sums.add(before, static_cast<double>(rest - like_last));
  sums.add(last, static_cast<double>(like_last));
  sums.write_mean_step(static_cast<double>(all), out);
}

void sample_steps(StepProcess& process, const SamplingOptions& options, StepSums& sums, StepDistribution& out) {
  SampledSteps steps(process, options, sums, out);
  if (!options.every_step) steps.warm_up();
  if (options.shown_steps > 0) steps.record_spans();
  if (options.every_step)
    while (out.simulated < options.run_steps) steps.count_step();
  else
    sample_blocks(steps, options, out);
  sums.write_mean_step(static_cast<double>(out.simulated), out);
  if (options.every_step) return;
  const calibration::BlockMean mean = steps.mean();
  const auto length = static_cast<double>(steps.block_length());
  out.half_width = mean.half_width / mean.mean;
  out.own_variance = mean.block_deviation * mean.block_deviation * length;
  // In a run that is shorter than a block the variance of single steps says more than that of so few blocks.
  if (const double deviation = standard_deviation(steps.durations_s()); static_cast<double>(options.run_steps) < length)
    out.own_variance = std::max(out.own_variance, deviation * deviation);
}

void show_steps(StepProcess& process, const SamplingOptions& options, StepDistribution& out) {
  const std::vector<std::size_t> rows(options.workers, 0);
  process.record(&out.spans);
  for (int i = 0; i < options.shown_steps && out.spans.size() < kMaxSpans; ++i) process.next(rows);
  process.record(nullptr);
}

}  // namespace ganymede::sim
