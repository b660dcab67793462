#include "kernel/step_clock.hpp"

#include <algorithm>

namespace ganymede::kernel {
namespace {

template <class Duration>
double to_seconds(Duration duration) {
  return std::chrono::duration<double>(duration).count();
}

}  // namespace

void StepClock::record(Ops& ops, std::size_t generator_layers, std::size_t discriminator_layers,
                       int discriminator_updates) {
  ops_ = &ops;
  on_device_ = ops.has_clock();
  phases_.resize(kPhaseCount * static_cast<std::size_t>(discriminator_updates));
  ops.set_timed(true);
  generator_ready_.assign(generator_layers, 0);
  discriminator_ready_.assign(discriminator_layers, 0);
}

void StepClock::reserve(std::size_t steps) {
  if (!recording()) return;
  wall_s_.reserve(wall_s_.size() + steps);
  for (auto& phase : phases_)
    for (auto* times : {&phase.start_s, &phase.seconds, &phase.host_s}) times->reserve(times->size() + steps);
}

void StepClock::begin_step() {
  if (!recording()) return;
  const auto now = Clock::now();
  if (in_step_) {
    close_phase(now);
    take_device_times();
    wall_s_.push_back(to_seconds(now - step_begin_));
  }
  step_begin_ = now;
  in_step_ = true;
}

void StepClock::enter(Phase phase) {
  if (!recording()) return;
  const auto now = Clock::now();
  close_phase(now);
  if (on_device_) {
    phase_marks_.push_back({marks_, index(phase, update_)});
    ops_->mark(marks_++);
  }
  phase_ = phase;
  update_of_phase_ = update_;
  phase_begin_ = now;
  in_phase_ = true;
  work_at_begin_ = ops_->work();
}

void StepClock::end_step() {
  if (!in_step_) return;
  const auto now = Clock::now();
  close_phase(now);
  take_device_times();
  wall_s_.push_back(to_seconds(now - step_begin_));
  in_step_ = false;
}

void StepClock::close_phase(Clock::time_point now) {
  if (!in_phase_) return;
  PhaseTimes& times = phases_[index(phase_, update_of_phase_)];
  times.work = ops_->work() - work_at_begin_;
  const double seconds = to_seconds(now - phase_begin_);
  in_phase_ = false;
  if (on_device_ && phase_ != Phase::load) {
    times.host_s.push_back(seconds);
    return;
  }
  times.start_s.push_back(to_seconds(phase_begin_ - step_begin_));
  times.seconds.push_back(seconds);
  times.host_s.push_back(std::max(0.0, seconds - times.work.seconds));
}

void StepClock::take_device_times() {
  for (std::size_t i = 0; i < phase_marks_.size(); ++i) {
    const auto [mark, phase] = phase_marks_[i];
    if (phase % kPhaseCount == static_cast<std::size_t>(Phase::load)) continue;  // the host's own
    const double begin = ops_->mark_s(mark),
                 end = ops_->mark_s(i + 1 < phase_marks_.size() ? phase_marks_[i + 1].mark : marks_);
    phases_[phase].start_s.push_back(begin);
    phases_[phase].seconds.push_back(end - begin);
  }
  for (const auto& [ready, layer, mark, phase_mark] : ready_marks_)
    (*ready)[layer] += ops_->mark_s(mark) - ops_->mark_s(phase_mark);
  phase_marks_.clear();
  ready_marks_.clear();
  marks_ = 0;
}

void StepClock::layer_done(std::vector<double>& ready, std::size_t layer) {
  if (!recording()) return;
  if (!on_device_) {
    ready[layer] += to_seconds(Clock::now() - phase_begin_);
    return;
  }
  ready_marks_.push_back({&ready, layer, marks_, phase_marks_.back().mark});
  ops_->mark(marks_++);
}

}  // namespace ganymede::kernel
