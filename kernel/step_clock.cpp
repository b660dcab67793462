#include "kernel/step_clock.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <numeric>
#include <string>
#include <utility>

namespace ganymede::kernel {
namespace {

/// Each of the first steps is marked, because the one that is captured takes longer than the later ones.
constexpr std::size_t kFirstMarked = 3, kMarkEvery = 8;
bool is_marked_step(std::size_t step) { return step < kFirstMarked || step % kMarkEvery == 0; }

template <class Duration>
double to_seconds(Duration duration) {
  return std::chrono::duration<double>(duration).count();
}

/// Rounds to whole nanoseconds, the clock's resolution. Further digits are noise of subtractions and would make the
/// file four times as large.
std::vector<double> after_warmup(const std::vector<double>& values, std::size_t warmup) {
  std::vector<double> rest(values.begin() + static_cast<std::ptrdiff_t>(warmup), values.end());
  for (auto& value : rest) value = std::round(value * 1e9) / 1e9;
  return rest;
}

double sum(const std::vector<double>& values) { return std::accumulate(values.begin(), values.end(), 0.0); }

/// The phase's name in the trace: "discriminator.update", and "discriminator.update.2" for the second in a step.
std::string name_of(Phase phase, int update) {
  std::string name(kPhases[static_cast<std::size_t>(phase)].name);
  return update == 0 ? name : name + "." + std::to_string(update + 1);
}

/// Where only some steps have the phase, its work and its launches are the mean.
traces::TracePhase make_phase(const StepClock& clock, Phase phase, int update, const LazySteps& lazy,
                              std::size_t warmup) {
  const PhaseInfo& info = kPhases[static_cast<std::size_t>(phase)];
  const StepClock::PhaseTimes& times = clock.times(phase, update);
  const int every = interval_of(info.name, lazy);
  return {.name = name_of(phase, update),
          .network = std::string(info.network),
          .stream = std::string(info.stream),
          .start_s = after_warmup(times.start_s, warmup),
          .seconds = after_warmup(times.seconds, warmup),
          .host_s = after_warmup(times.host_s, warmup),
          .flops = times.work.flops / every,
          .bytes_read = times.work.bytes_read / every,
          .bytes_written = times.work.bytes_written / every,
          .launches = (times.work.launches + every - 1) / every};
}

void append(std::vector<traces::TraceBucket>& all, std::vector<traces::TraceBucket> more) {
  all.insert(all.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

}  // namespace

std::vector<Phase> phases_of(StepKind kind, bool gradient_penalty, bool path_length) {
  std::vector<Phase> phases{Phase::load, Phase::copy};
  const auto add = [&](Phase first, Phase last) {
    for (int phase = static_cast<int>(first); phase <= static_cast<int>(last); ++phase)
      if ((Phase{phase} != Phase::discriminator_gradient_penalty || gradient_penalty) &&
          (Phase{phase} != Phase::generator_path_length || path_length))
        phases.push_back(Phase{phase});
  };
  switch (kind) {
    case StepKind::adversarial:
      add(Phase::discriminator_forward_real, Phase::generator_update);
      break;
    case StepKind::variational:
      add(Phase::encoder_forward, Phase::encoder_update);
      break;
    case StepKind::cyclic:
      add(Phase::cycle_b_forward, Phase::cycle_a_backward);
      phases.insert(phases.end(), {Phase::generator_update, Phase::discriminator_forward_real,
                                   Phase::discriminator_backward_real, Phase::discriminator_forward_fake,
                                   Phase::discriminator_backward_fake, Phase::discriminator_update});
      break;
  }
  return phases;
}

int interval_of(std::string_view phase, const LazySteps& lazy) {
  const auto is = [&](Phase one) { return phase.starts_with(kPhases[static_cast<std::size_t>(one)].name); };
  if (is(Phase::discriminator_gradient_penalty)) return lazy.penalty_every;
  return is(Phase::generator_path_length) ? std::max(1, lazy.path_every) : 1;
}

void StepClock::record(TensorOps& ops, std::size_t generator_layers, std::size_t discriminator_layers,
                       int discriminator_updates, bool alike) {
  ops_ = &ops;
  alike_ = alike;
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
  marked_ = on_device_ && (!alike_ || is_marked_step(begun_));
  ++begun_;
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
  if (!alike_ || is_marked_step(step))
    take_device_times();
  else
    repeat_device_times(step, wall_s / wall_s_.back());
  wall_s_.push_back(wall_s);
}

void StepClock::close_phase(Clock::time_point now) {
  if (!in_phase_) return;
  PhaseTimes& times = phases_[index(phase_, update_of_phase_)];
  const Work work = ops_->work() - work_at_begin_;
  if (alike_ || work.flops >= times.work.flops) times.work = work;
  const double seconds = to_seconds(now - phase_begin_);
  in_phase_ = false;
  if (on_device_ && phase_ != Phase::load) {
    times.host_s.push_back(work.seconds);  // without waiting for the losses in the last phase
    return;
  }
  times.start_s.push_back(to_seconds(phase_begin_ - step_begin_));
  times.seconds.push_back(seconds);
  times.host_s.push_back(std::max(0.0, seconds - work.seconds));
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
  // A lazy phase, which only some steps have, finishes its steps' gradients: the trace, in which they follow the phase
  // that finishes those of the others, has them at the end of that.
  const bool lazy =
      !alike_ && (phase_ == Phase::discriminator_gradient_penalty || phase_ == Phase::generator_path_length);
  const std::size_t usual = index(
      phase_ == Phase::generator_path_length ? Phase::generator_backward : Phase::discriminator_backward_fake, update_);
  if (!on_device_) {
    ready[layer] += lazy ? phases_[usual].seconds.back() : to_seconds(Clock::now() - phase_begin_);
    return;
  }
  if (!marked_) return;
  if (lazy) {
    const auto is_usual = [&](const auto& begun) { return begun.phase == usual; };
    const auto next = std::find_if(phase_events_.rbegin(), phase_events_.rend(), is_usual).base();
    ready_events_.push_back({&ready, layer, next->event, std::prev(next)->event});
    return;
  }
  ready_events_.push_back({&ready, layer, events_, phase_events_.back().event});
  ops_->timeline().record_event(events_++);
}

std::vector<traces::TraceBucket> make_buckets(const Network& network, const std::vector<double>& ready_s,
                                              double phase_s, Phase after) {
  assert(ready_s.size() == network.layers().size());
  std::vector<traces::TraceBucket> buckets;
  double open_bytes = 0;
  for (std::size_t layer = ready_s.size(); layer-- > 0;) {
    const auto bytes = static_cast<std::int64_t>(network.layer_parameters(layer) * sizeof(float));
    if (bytes == 0) continue;
    if (buckets.empty() || open_bytes + static_cast<double>(bytes) > kBucketBytes) {
      buckets.push_back({network.name(), 0, std::string(kPhases[static_cast<std::size_t>(after)].name), 1});
      open_bytes = 0;
    }
    open_bytes += static_cast<double>(bytes);
    buckets.back().bytes += bytes;
    // A bucket is ready when the gradients of its last layer are.
    if (phase_s > 0) buckets.back().ready_fraction = std::clamp(ready_s[layer] / phase_s, 1e-6, 1.0);
  }
  return buckets;
}

traces::TraceBatch make_trace_batch(const Gan& gan, const StepClock& clock, std::size_t warmup) {
  assert(clock.wall_s().size() > warmup);
  traces::TraceBatch batch;
  batch.batch = gan.batch;
  batch.warmup_steps_dropped = static_cast<int>(warmup);
  batch.wall_s = after_warmup(clock.wall_s(), warmup);
  const int updates = clock.discriminator_updates();
  const bool variational = gan.step == StepKind::variational, generator_first = gan.step != StepKind::adversarial;
  const auto has = [&](Phase phase) { return !clock.times(phase).seconds.empty(); };
  const bool penalty = has(Phase::discriminator_gradient_penalty);
  // The phases that finish the gradients of the two networks.
  const Phase of_generator = variational                    ? Phase::decoder_backward
                             : gan.step == StepKind::cyclic ? Phase::cycle_a_backward
                                                            : Phase::generator_backward;
  const Phase of_discriminator = variational                              ? Phase::encoder_backward
                                 : penalty && gan.lazy.penalty_every == 1 ? Phase::discriminator_gradient_penalty
                                                                          : Phase::discriminator_backward_fake;
  double backward_s = 0;
  for (int update = 0; update < updates; ++update) backward_s += sum(clock.times(of_discriminator, update).seconds);
  const std::vector<Phase> phases = phases_of(gan.step, penalty, has(Phase::generator_path_length));
  auto of_the_generator =
      make_buckets(gan.generator, clock.generator_ready_s(), sum(clock.times(of_generator).seconds), of_generator);
  if (generator_first) append(batch.buckets, std::exchange(of_the_generator, {}));
  for (int update = 0; update < updates; ++update) {
    for (const Phase phase : phases)
      if (generator_first || phase < kFirstOfGenerator)
        batch.phases.push_back(make_phase(clock, phase, update, gan.lazy, warmup));
    auto buckets = make_buckets(gan.discriminator, clock.discriminator_ready_s(), backward_s, of_discriminator);
    for (traces::TraceBucket& bucket : buckets) {
      bucket.after_phase = name_of(of_discriminator, update);
      if (updates > 1) bucket.before_phase = name_of(Phase::discriminator_update, update);
    }
    append(batch.buckets, std::move(buckets));
  }
  for (const Phase phase : phases)
    if (!generator_first && phase >= kFirstOfGenerator)
      batch.phases.push_back(make_phase(clock, phase, 0, gan.lazy, warmup));
  append(batch.buckets, std::move(of_the_generator));
  return batch;
}

}  // namespace ganymede::kernel
