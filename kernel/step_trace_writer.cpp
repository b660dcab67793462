#include "kernel/step_trace_writer.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <numeric>
#include <string>

namespace ganymede::kernel {
namespace {

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

traces::TracePhase make_phase(const StepClock& clock, Phase phase, int update, std::size_t warmup) {
  const PhaseInfo& info = kPhases[static_cast<std::size_t>(phase)];
  const StepClock::PhaseTimes& times = clock.times(phase, update);
  return {.name = name_of(phase, update),
          .network = std::string(info.network),
          .stream = std::string(info.stream),
          .start_s = after_warmup(times.start_s, warmup),
          .seconds = after_warmup(times.seconds, warmup),
          .host_s = after_warmup(times.host_s, warmup),
          .flops = times.work.flops,
          .bytes_read = times.work.bytes_read,
          .bytes_written = times.work.bytes_written,
          .launches = times.work.launches};
}

void append(std::vector<traces::TraceBucket>& all, std::vector<traces::TraceBucket> more) {
  all.insert(all.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

}  // namespace

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
  // The phase that finishes the discriminator's gradients.
  const Phase last = clock.times(Phase::discriminator_gradient_penalty).seconds.empty()
                         ? Phase::discriminator_backward_fake
                         : Phase::discriminator_gradient_penalty;
  double backward_s = 0;
  for (int update = 0; update < updates; ++update) backward_s += sum(clock.times(last, update).seconds);
  for (int update = 0; update < updates; ++update) {
    for (Phase phase{}; phase < kFirstOfGenerator; phase = Phase{static_cast<int>(phase) + 1})
      if (!clock.times(phase, update).seconds.empty()) batch.phases.push_back(make_phase(clock, phase, update, warmup));
    auto buckets = make_buckets(gan.discriminator, clock.discriminator_ready_s(), backward_s, last);
    for (traces::TraceBucket& bucket : buckets) {
      bucket.after_phase = name_of(last, update);
      if (updates > 1) bucket.before_phase = name_of(Phase::discriminator_update, update);
    }
    append(batch.buckets, std::move(buckets));
  }
  for (Phase phase = kFirstOfGenerator; static_cast<std::size_t>(phase) < kPhaseCount;
       phase = Phase{static_cast<int>(phase) + 1})
    batch.phases.push_back(make_phase(clock, phase, 0, warmup));
  append(batch.buckets, make_buckets(gan.generator, clock.generator_ready_s(),
                                     sum(clock.times(Phase::generator_backward).seconds), Phase::generator_backward));
  return batch;
}

}  // namespace ganymede::kernel
