#include "rehearsal/step_player.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "common/statistics.hpp"
#include "common/units.hpp"
#include "rehearsal/clock.hpp"
#include "rehearsal/local_network.hpp"

namespace ganymede::rehearsal {
namespace {

constexpr std::size_t kSide = 48;  // of a matrix: a product takes some tens of microseconds

}  // namespace

BusyWork::BusyWork() : a_(kSide * kSide, 0.5F), b_(kSide * kSide, 0.25F), c_(kSide * kSide, 0) {
  const ProcessorTurn usual(ProcessorTurn::Turn::usual);
  constexpr int kTries = 20, kUnits = 50;
  double least = std::numeric_limits<double>::infinity();
  for (int i = 0; i < kTries; ++i) {
    const double begin = machine_time();
    for (int unit = 0; unit < kUnits; ++unit) compute_unit();
    least = std::min(least, (machine_time() - begin) / kUnits);
  }
  unit_s_ = least;
}

void BusyWork::compute_unit() {
  for (std::size_t row = 0; row < kSide; ++row)
    for (std::size_t k = 0; k < kSide; ++k) {
      const float factor = a_[row * kSide + k];
      for (std::size_t column = 0; column < kSide; ++column)
        c_[row * kSide + column] += factor * b_[k * kSide + column];
    }
  // The next product depends on this one, and no number grows without bound.
  constexpr float kMost = 1e6F;
  if (c_[0] > kMost) std::fill(c_.begin(), c_.end(), 0.0F);
  a_[0] = 0.5F + c_[0] / (4 * kMost);
}

StepPlayer::StepPlayer(const StepPlan& plan, Group& group, double begin)
    : plan_(plan),
      group_(group),
      wait_before_(sim::phases_that_wait(plan.model, plan.options.overlap)),
      input_(plan.model.phases.size(), plan.options.prefetch_depth),
      clock_(begin) {
  for (const sim::Schedule& schedule : plan.schedules) {
    RankPlan mine(schedule, group.rank());
    const std::size_t floats = mine.floats();
    buckets_.push_back({std::move(mine), std::vector<float>(floats)});
  }
}

bool StepPlayer::progress() {
  if (issued_.empty()) return false;
  Bucket& bucket = buckets_[issued_.front()];
  bool any = false;
  if (!running_) {
    // One after the other, as collectives of a communicator are; every rank issues them in the same order.
    running_.emplace(bucket.plan, group_.messenger(), bucket.gradients, Group::kFirstFreeTag);
    any = true;
  }
  any = running_->progress() || any;
  if (!running_->done()) return any;
  running_.reset();
  bucket.is_pending = false;
  bucket.reduced = group_.now();
  issued_.pop_front();
  return true;
}

std::string StepPlayer::reduction() const {
  std::string out =
      fmt::format("the reduction of bucket {} ({} bytes)", issued_.front(), plan_.schedules[issued_.front()].bytes());
  if (running_) out += ", " + running_->waits_for([this](int rank) { return group_.name_of(rank); });
  return out;
}

void StepPlayer::communicate_until(double time, PlayedStep& step) {
  constexpr double kLook = 5e-3;  // seconds between two looks at signals
  for (double now = group_.now(); now < time; now = group_.now()) {
    const auto where = [this] { return issued_.empty() ? "a phase" : "a phase, beside " + reduction(); };
    group_.throw_if_asked_to_end(where);
    if (group_.attempt([this] { return progress(); }, where)) continue;
    const double most = std::min(time - now, kLook);
    const auto wait = [&] {
      issued_.empty() ? group_.messenger().rest(most) : group_.messenger().wait(most);
      return false;
    };
    group_.attempt(wait, where);
  }
  step.late = std::max(step.late, group_.now() - time);
}

/// Messages go on while the rank computes, as far as a look between two products lets them.
void StepPlayer::compute_for(double seconds) {
  const ProcessorTurn usual(ProcessorTurn::Turn::usual);
  const auto units = std::llround(seconds / work_->unit_s());
  for (long long unit = 0; unit < units; ++unit) {
    work_->compute_unit();
    group_.throw_if_asked_to_end([] { return std::string("a phase"); });
    if (issued_.empty()) continue;
    const auto communicate = [this] {
      group_.messenger().wait(0);
      while (progress()) {
      }
      return false;
    };
    group_.attempt(communicate, [this] { return issued_.empty() ? "a phase" : reduction(); });
  }
}

void StepPlayer::issue(std::size_t bucket, PlayedStep& step) {
  buckets_[bucket].is_pending = true;
  step.issued[bucket] = group_.now();
  issued_.push_back(bucket);
  group_.attempt([this] { return progress(); }, [this] { return reduction(); });
}

void StepPlayer::run_phase(std::size_t index, std::size_t row, PlayedStep& step) {
  const calibration::StepPhase& phase = plan_.model.phases[index];
  const double start = clock_ + slow_factor_ * phase.gap_s[row],
               end = start + slow_factor_ * std::max(phase.device_s[row], phase.host_s[row]);
  if (work_ != nullptr) communicate_until(start, step);
  double reached = start;
  const auto go_on_until = [&](double moment) {
    if (work_ == nullptr) return communicate_until(moment, step);
    compute_for(moment - reached);
    reached = std::max(reached, moment);
  };
  for (std::size_t bucket = 0; bucket < buckets_.size(); ++bucket) {
    if (plan_.model.buckets[bucket].phase != index) continue;
    if (!plan_.options.overlap) {
      held_back_.push_back(bucket);
      continue;
    }
    go_on_until(start + plan_.model.buckets[bucket].ready_fraction * (end - start));
    issue(bucket, step);
  }
  go_on_until(end);
  clock_ = work_ == nullptr ? end : group_.now();
}

void StepPlayer::wait_for_reductions(std::size_t phase, PlayedStep& step) {
  const auto is_needed = [&](std::size_t bucket) { return wait_before_[bucket] <= phase; };
  if (std::any_of(held_back_.begin(), held_back_.end(), is_needed)) {
    for (const std::size_t bucket : held_back_) issue(bucket, step);
    held_back_.clear();
  }
  const auto is_reduced = [&] {
    for (std::size_t bucket = 0; bucket < buckets_.size(); ++bucket)
      if (is_needed(bucket) && buckets_[bucket].is_pending) return false;
    return true;
  };
  const double begin = clock_;
  if (!is_reduced()) group_.drive([&] { return progress(); }, is_reduced, [this] { return reduction(); });
  for (std::size_t bucket = 0; bucket < buckets_.size(); ++bucket)
    if (wait_before_[bucket] == phase) clock_ = std::max(clock_, buckets_[bucket].reduced);
  for (std::size_t bucket = 0; bucket < buckets_.size(); ++bucket)
    if (wait_before_[bucket] == phase) step.wait_begin[bucket] = begin, step.wait_end[bucket] = clock_;
}

PlayedStep StepPlayer::play(std::size_t row) {
  group_.enter(fmt::format("step {}", ++step_));
  const calibration::StepModel& model = plan_.model;
  PlayedStep step{.begin = clock_, .issued = std::vector<double>(buckets_.size())};
  step.wait_begin = step.wait_end = step.issued;
  const double batch = input_.next_batch(model, row, Seconds{clock_}).si;
  step.input_stall = batch - clock_;
  communicate_until(batch, step);
  clock_ = batch;
  for (std::size_t phase = 0; phase < model.phases.size(); ++phase) {
    if (model.phases[phase].stream != calibration::Stream::compute) continue;
    wait_for_reductions(phase, step);
    run_phase(phase, row, step);
  }
  wait_for_reductions(model.phases.size(), step);
  clock_ += slow_factor_ * model.tail_s[row];
  communicate_until(clock_, step);
  step.end = clock_;
  return step;
}

std::string StepPlayer::check(std::size_t row) {
  for (Bucket& bucket : buckets_) fill(bucket.gradients, group_.rank());
  play(row);
  for (std::size_t bucket = 0; bucket < buckets_.size(); ++bucket)
    if (const std::string fault = fault_in_sum(buckets_[bucket].gradients, group_.ranks()); !fault.empty())
      return fmt::format("bucket {}: {}", bucket, fault);
  return "";
}

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
