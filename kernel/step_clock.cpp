#include "kernel/step_clock.hpp"

#include <algorithm>

namespace ganymede::kernel {
namespace {

/// Each of the first steps is marked, because the one that is captured takes longer than the later ones.
constexpr std::size_t kFirstMarked = 3, kMarkEvery = 8;
bool is_marked_step(std::size_t step) { return step < kFirstMarked || step % kMarkEvery == 0; }

template <class Duration>
double to_seconds(Duration duration) {
  return std::chrono::duration<double>(duration).count();
}

}  // namespace

void StepClock::record(TensorOps& ops, std::size_t generator_layers, std::size_t discriminator_layers,
                       int discriminator_updates) {
  ops_ = &ops;
  on_device_ = ops.timeline().has_clock();
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
  if (on_device_)
    close_phase(now);
  else if (in_step_)
    close_step(now);
  step_begin_ = now;
  if (!in_step_) wall_begin_ = now;
  in_step_ = true;
  marked_ = on_device_ && is_marked_step(begun_++);
  ops_->timeline().set_marked(marked_);
}

void StepClock::begin_phase(Phase phase) {
  if (!recording()) return;
  const auto now = Clock::now();
  close_phase(now);
  if (marked_) {
    phase_events_.push_back({events_, index(phase, update_)});
    ops_->timeline().record_event(events_++);
  }
  phase_ = phase;
  update_of_phase_ = update_;
  phase_begin_ = now;
  in_phase_ = true;
  work_at_begin_ = ops_->work();
}

void StepClock::end_step() {
  if (!in_step_) return;
  if (!on_device_) close_step(Clock::now());
  in_step_ = false;
  if (on_device_) ops_->timeline().set_marked(false);
}

void StepClock::close_step(Clock::time_point now) {
  close_phase(now);
  wall_s_.push_back(to_seconds(now - step_begin_));
}

void StepClock::step_done() {
  if (!recording() || !on_device_) return;
  const auto now = Clock::now();
  const std::size_t step = wall_s_.size();
  if (begun_ == step + 1) close_phase(now);
  const double wall_s = to_seconds(now - wall_begin_);
  wall_begin_ = now;
  if (is_marked_step(step))
    take_device_times();
  else
    repeat_device_times(step, wall_s / wall_s_.back());
  wall_s_.push_back(wall_s);
}

void StepClock::close_phase(Clock::time_point now) {
  if (!in_phase_) return;
  PhaseTimes& times = phases_[index(phase_, update_of_phase_)];
  times.work = ops_->work() - work_at_begin_;
  const double seconds = to_seconds(now - phase_begin_);
  in_phase_ = false;
  if (on_device_ && phase_ != Phase::load) {
    times.host_s.push_back(times.work.seconds);  // without waiting for the losses in the last phase
    return;
  }
  times.start_s.push_back(to_seconds(phase_begin_ - step_begin_));
  times.seconds.push_back(seconds);
  times.host_s.push_back(std::max(0.0, seconds - times.work.seconds));
}

void StepClock::take_device_times() {
  for (std::size_t i = 0; i < phase_events_.size(); ++i) {
    const auto [event, phase] = phase_events_[i];
    if (phase % kPhaseCount == static_cast<std::size_t>(Phase::load)) continue;  // timed by the host's clock
    const double begin = ops_->timeline().elapsed_s(event),
                 end = ops_->timeline().elapsed_s(i + 1 < phase_events_.size() ? phase_events_[i + 1].event : events_);
    phases_[phase].start_s.push_back(begin);
    phases_[phase].seconds.push_back(end - begin);
    // Where the host needs longer to call operations than the device to run them, the device waits no longer than that.
    double& host_s = phases_[phase].host_s.back();
    host_s = std::min(host_s, end - begin);
  }
  last_ready_.clear();
  for (const auto& [ready, layer, event, phase_event] : ready_events_) {
    const double seconds = ops_->timeline().elapsed_s(event) - ops_->timeline().elapsed_s(phase_event);
    last_ready_.push_back({ready, layer, seconds});
    (*ready)[layer] += seconds;
  }
  phase_events_.clear();
  ready_events_.clear();
  events_ = 0;
}

void StepClock::repeat_device_times(std::size_t step, double factor) {
  for (PhaseTimes& times : phases_) {
    // No phase of this step, or timed by the host's clock. The phases of the next step may have begun.
    if (times.host_s.size() <= step || times.seconds.size() > step) continue;
    times.start_s.push_back(factor * times.start_s.back());
    times.seconds.push_back(factor * times.seconds.back());
    times.host_s[step] = std::min(times.host_s[step], times.seconds.back());
  }
  for (auto& [ready, layer, seconds] : last_ready_) (*ready)[layer] += seconds *= factor;
}

void StepClock::layer_done(std::vector<double>& ready, std::size_t layer) {
  if (!recording()) return;
  if (!on_device_) {
    ready[layer] += to_seconds(Clock::now() - phase_begin_);
    return;
  }
  if (!marked_) return;
  ready_events_.push_back({&ready, layer, events_, phase_events_.back().event});
  ops_->timeline().record_event(events_++);
}

}  // namespace ganymede::kernel
