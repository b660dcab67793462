#include "rehearsal/played_steps.hpp"

#include <algorithm>
#include <utility>

#include "common/statistics.hpp"

namespace ganymede::rehearsal {
namespace {

constexpr std::size_t kMoments = 4, kLists = 3;  // begin, end, input stall, late; issued, begin and end of waiting

double last_of(const std::vector<PlayedStep>& ranks, double PlayedStep::*moment) {
  double out = ranks.front().*moment;
  for (const PlayedStep& step : ranks) out = std::max(out, step.*moment);
  return out;
}

}  // namespace

std::size_t numbers_of_step(std::size_t buckets) { return kMoments + kLists * buckets; }

void append_numbers(const PlayedStep& step, std::vector<double>& numbers) {
  numbers.insert(numbers.end(), {step.begin, step.end, step.input_stall, step.late});
  for (const auto* by_bucket : {&step.issued, &step.wait_begin, &step.wait_end})
    numbers.insert(numbers.end(), by_bucket->begin(), by_bucket->end());
}

PlayedStep step_of_numbers(const double* from, std::size_t buckets) {
  PlayedStep step{.begin = from[0], .end = from[1], .input_stall = from[2], .late = from[3]};
  const auto take = [&](std::size_t list) {
    return std::vector<double>(from + kMoments + list * buckets, from + kMoments + (list + 1) * buckets);
  };
  step.issued = take(0);
  step.wait_begin = take(1);
  step.wait_end = take(2);
  return step;
}

PlayedSteps::PlayedSteps(std::vector<std::vector<PlayedStep>> steps, std::vector<std::size_t> wait_before)
    : steps_(std::move(steps)), wait_before_(std::move(wait_before)) {}

// A rank begins its next step as soon as its own has ended, so that these durations sum to the time of all steps.
std::vector<double> PlayedSteps::durations() const {
  std::vector<double> out;
  for (const auto& ranks : steps_) out.push_back(last_of(ranks, &PlayedStep::end) - last_of(ranks, &PlayedStep::begin));
  return out;
}

StepParts PlayedSteps::parts() const {
  StepParts out;
  const auto all = durations();
  for (const double duration : all) out.step += duration / static_cast<double>(all.size());
  for (const auto& ranks : steps_) add_step(ranks, out);
  out.compute = out.step - out.exposed - out.straggler - out.input_stall;
  return out;
}

double PlayedSteps::median_late() const {
  std::vector<double> late;
  for (const auto& ranks : steps_)
    for (const PlayedStep& step : ranks) late.push_back(step.late);
  std::sort(late.begin(), late.end());
  return quantile(late, 0.5);
}

/// Splits waiting as SynchronousStep does: until the last rank has issued what is waited for, a rank waits for that
/// rank, and then for communication.
void PlayedSteps::add_step(const std::vector<PlayedStep>& ranks, StepParts& out) const {
  const double share = 1 / static_cast<double>(ranks.size() * steps_.size());
  for (const PlayedStep& step : ranks) out.input_stall += step.input_stall * share;
  std::vector<std::size_t> phases = wait_before_;
  std::sort(phases.begin(), phases.end());
  phases.erase(std::unique(phases.begin(), phases.end()), phases.end());
  for (const std::size_t phase : phases) {
    double last_issued = 0;
    std::size_t any = 0;
    for (std::size_t bucket = 0; bucket < wait_before_.size(); ++bucket) {
      if (wait_before_[bucket] != phase) continue;
      any = bucket;
      for (const PlayedStep& step : ranks) last_issued = std::max(last_issued, step.issued[bucket]);
    }
    for (const PlayedStep& step : ranks) {
      const double wait = step.wait_end[any] - step.wait_begin[any];
      const double straggler = std::clamp(last_issued - step.wait_begin[any], 0.0, wait);
      out.straggler += straggler * share;
      out.exposed += (wait - straggler) * share;
    }
  }
}

}  // namespace ganymede::rehearsal
