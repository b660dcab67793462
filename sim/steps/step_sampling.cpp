#include "sim/steps/step_sampling.hpp"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "calibration/statistics.hpp"
#include "sim/steps/step_sampler.hpp"

namespace ganymede::sim {
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
