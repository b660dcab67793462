#include "sim/run/training.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <utility>

#include "calibration/statistics.hpp"
#include "common/random.hpp"
#include "common/units.hpp"
#include "sim/ledger/ledger.hpp"

namespace ganymede::sim {
namespace {

std::size_t index(GpuUse use) { return static_cast<std::size_t>(use); }

GpuNanoseconds workers_of(const Segment& segment, const std::vector<TrainingNode>& nodes, std::size_t pool) {
  return GpuNanoseconds{segment.configuration.nodes[pool]} * nodes[pool].gpus;
}

void add_totals(StepTotals& totals, const Segment& segment, const std::vector<TrainingNode>& nodes,
                const SegmentProgress& reached, double elapsed_ns) {
  const StepDistribution& d = *segment.steps;
  const double steps = reached.steps;
  totals.steps += steps;
  totals.training_s += steps * d.mean.si;
  for (const PoolStep& pool : d.pools) totals.device_s += steps * pool.device.si;
  totals.host_s += steps * d.host.si;
  totals.flops += steps * d.flops;
  totals.link_s += steps * d.busiest_link.si;
  totals.reads += steps * d.reads;
  for (const PlaceTraffic& traffic : d.between_places)
    totals.between[{traffic.from, traffic.to}] += steps * traffic.bytes.si;
  totals.stale_steps += steps * d.staleness;
  totals.checkpoints += reached.checkpoints;
  for (std::size_t p = 0; p < nodes.size(); ++p) {
    const TrainingNode& node = nodes[p];
    const double node_s = segment.configuration.nodes[p] * elapsed_ns / kNanosecondsPerSecond;
    totals.vcpu_s += node_s * node.vcpus;
    totals.vcpu_reserved_s += node_s * node.vcpus * segment.configuration.cpus;
    totals.memory_byte_s += node_s * node.memory_bytes;
    totals.memory_reserved_byte_s += node_s * node.memory_bytes * segment.configuration.memory;
  }
}

void add_error(RunError& error, const StepDistribution& d, double steps, double relative_error) {
  const double training_s = steps * d.mean.si;
  error.sampling_s += training_s * d.half_width;
  error.own_s2 += steps * d.own_variance;
  // The widths of several workers are fitted to published steps of one GPU and of several, which two runs differ by,
  // too: the larger of the two counts, not both.
  const auto add = [&](double of_workers) { return training_s * std::max(relative_error, of_workers); };
  error.shorter_s += add(1 - portable_exp(-d.error));
  error.longer_s += add(portable_exp(d.error) - 1);
  error.low_s += steps * (d.mean - d.low).si;
  error.high_s += steps * (d.high - d.mean).si;
}

/// Part of a step that rounding may add or remove.
constexpr double kStepRounding = 1e-9;

}  // namespace

TrainingProgress::TrainingProgress(std::vector<TrainingNode> nodes)
    : nodes_(std::move(nodes)),
      pending_(nodes_.size(), Uses{}),
      account_{{}, {}, std::vector<Ledger>(nodes_.size()), std::vector<double>(nodes_.size(), 0)} {}

void TrainingProgress::begin_segment(Segment segment, bool same_workers) {
  assert(!under_way_);
  segment_ = std::move(segment);
  const double every = segment_.checkpoint_every;
  segment_.checkpoint_written = same_workers && every > 0 ? checkpoint_written_ : 0;
  if (segment_.checkpoint_written > 0) {
    since_ = every;
  } else if (checkpoint_every_ > 0 && every > 0 && every != checkpoint_every_) {
    // The interval between checkpoints is a time: if steps take longer, it holds fewer of them, and the same share of
    // it has passed. The next checkpoint follows a whole step, like all checkpoints.
    const double share = std::min(1.0, since_ / checkpoint_every_);
    const double next = std::max(steps_, std::round(steps_ + (1 - share) * every));
    since_ = every - (next - steps_);
  }
  checkpoint_every_ = every;
  segment_.since_checkpoint = since_;
  under_way_ = true;
}

void TrainingProgress::measure(const MeasuredSegment& measured, const StepDistribution& steps, double checkpoint_ns) {
  assert(under_way_);
  segment_.measured = measured;
  segment_.steps = &steps;
  segment_.step_ns = steps.mean.si * kNanosecondsPerSecond;
  segment_.checkpoint_ns = checkpoint_ns;
}

/// Adds the GPU time of `steps` steps that took `nanoseconds` to the pending time, by pool and use. Compute gets the
/// rest that the other uses leave, so that the uses sum to workers x time exactly.
void TrainingProgress::account_steps(double steps, double nanoseconds) {
  const auto duration = static_cast<GpuNanoseconds>(std::llround(nanoseconds));
  for (std::size_t p = 0; p < pending_.size(); ++p) {
    const GpuNanoseconds workers = workers_of(segment_, nodes_, p);
    if (workers == 0) continue;
    const PoolStep& pool = segment_.steps->pools[p];
    GpuNanoseconds rest = workers * duration;
    const auto share = [&](GpuUse use, Seconds each) {
      const auto wanted =
          static_cast<GpuNanoseconds>(std::round(std::max(0.0, each.si * steps) * kNanosecondsPerSecond));
      const GpuNanoseconds given = std::min(rest, wanted);
      pending_[p][index(use)] += given;
      rest -= given;
    };
    share(GpuUse::exposed_communication, pool.exposed);
    share(GpuUse::straggler, pool.straggler);
    share(GpuUse::input_stall, pool.stall);
    share(GpuUse::lost, pool.lost);
    pending_[p][index(GpuUse::compute)] += rest;
  }
}

/// Makes durable the first `steps` steps of the segment, which took `nanoseconds`, and all earlier ones.
void TrainingProgress::make_durable(double steps, double nanoseconds) {
  account_steps(steps, nanoseconds);
  finish();
  durable_ = done_ + steps * segment_.per_step;
  durable_steps_ = steps_ + steps;
  durable_images_ = images_ + steps * segment_.steps->images;
  since_ = 0;
  at_risk_s_ = 0;
}

std::int64_t TrainingProgress::end_segment(Nanoseconds now, bool lost, double relative_error) {
  assert(under_way_);
  under_way_ = false;
  const SegmentProgress reached = segment_.at(now);
  const auto elapsed_ns = static_cast<double>(now - segment_.start);
  const double writes_ns =
      (static_cast<double>(reached.checkpoints) - segment_.checkpoint_written) * segment_.checkpoint_ns;
  const double trained_ns = std::max(0.0, elapsed_ns - writes_ns - reached.writing_ns);
  checkpoint_written_ = segment_.checkpoint_ns > 0 ? reached.writing_ns / segment_.checkpoint_ns : 0;

  double fresh_steps = reached.steps, kept_ns = 0;
  if (reached.checkpoints > 0) {
    const double durable = std::min(reached.steps, segment_.durable_steps(reached.checkpoints));
    kept_ns = std::round(std::min(trained_ns, durable * segment_.step_ns));
    make_durable(durable, kept_ns);
    fresh_steps -= durable;
  }
  account_steps(fresh_steps, std::round(trained_ns) - kept_ns);
  const auto writing = static_cast<GpuNanoseconds>(now - segment_.start - std::llround(trained_ns));
  for (std::size_t p = 0; p < pending_.size(); ++p) {
    const GpuNanoseconds workers = workers_of(segment_, nodes_, p);
    if (workers > 0 && writing > 0) account_.ledgers[p].add(GpuUse::checkpoint, workers * writing);
    account_.device_s[p] += segment_.steps->pools[p].device.si * reached.steps;
  }
  since_ += fresh_steps;
  at_risk_s_ += fresh_steps * segment_.step_ns / kNanosecondsPerSecond;
  done_ += reached.steps * segment_.per_step;
  steps_ += reached.steps;
  images_ += reached.steps * segment_.steps->images;
  add_totals(account_.totals, segment_, nodes_, reached, elapsed_ns);
  add_error(account_.error, *segment_.steps, reached.steps, relative_error);
  if (lost) lose();
  return reached.checkpoints;
}

void TrainingProgress::save() {
  finish();
  durable_ = done_;
  durable_steps_ = steps_;
  durable_images_ = images_;
  since_ = 0;
  at_risk_s_ = 0;
  ++account_.totals.checkpoints;
}

/// Moves pending time to the ledgers, because it has become durable.
void TrainingProgress::finish() {
  assert(!under_way_);
  for (std::size_t p = 0; p < pending_.size(); ++p) {
    for (std::size_t use = 0; use < pending_[p].size(); ++use)
      if (pending_[p][use] > 0) account_.ledgers[p].add(static_cast<GpuUse>(use), pending_[p][use]);
    pending_[p] = Uses{};
  }
}

void TrainingProgress::lose() {
  assert(!under_way_);
  for (std::size_t p = 0; p < pending_.size(); ++p) {
    GpuNanoseconds sum = 0;
    for (const GpuNanoseconds time : pending_[p]) sum += time;
    if (sum > 0) account_.ledgers[p].add(GpuUse::lost, sum);
    pending_[p] = Uses{};
  }
  done_ = durable_;
  steps_ = durable_steps_;
  images_ = durable_images_;
  since_ = 0;
  lost_s_ += at_risk_s_;
  at_risk_s_ = 0;
}

double TrainingProgress::done(Nanoseconds now) const {
  return under_way_ ? done_ + segment_.at(now).steps * segment_.per_step : done_;
}

Seconds TrainingProgress::at_risk(Nanoseconds now) const {
  if (!under_way_) return Seconds{at_risk_s_};
  const SegmentProgress reached = segment_.at(now);
  const double fresh = reached.checkpoints > 0
                           ? std::max(0.0, reached.steps - segment_.durable_steps(reached.checkpoints))
                           : reached.steps;
  return Seconds{(reached.checkpoints > 0 ? 0 : at_risk_s_) + fresh * segment_.step_ns / kNanosecondsPerSecond};
}

double Segment::steps_to_first_checkpoint() const {
  return checkpoint_every > 0 ? std::max(0.0, checkpoint_every - since_checkpoint) : 0;
}

SegmentProgress Segment::at(Nanoseconds now) const {
  if (measured) return measured->progress;
  double elapsed = static_cast<double>(now - start) + checkpoint_written * checkpoint_ns;
  const double first = steps_to_first_checkpoint();
  if (checkpoint_every == 0 || elapsed <= first * step_ns) return {.steps = elapsed / step_ns, .checkpoints = 0};
  elapsed -= first * step_ns;
  const double cycle = checkpoint_ns + checkpoint_every * step_ns;
  const double cycles = std::floor(elapsed / cycle);
  const double rest = elapsed - cycles * cycle;
  const double before = first + cycles * checkpoint_every;
  const auto complete = static_cast<std::int64_t>(cycles);
  if (rest < checkpoint_ns) return {.steps = before, .checkpoints = complete, .writing_ns = rest};
  return {.steps = before + (rest - checkpoint_ns) / step_ns, .checkpoints = complete + 1};
}

Nanoseconds Segment::time_of(double count) const {
  const double first = steps_to_first_checkpoint();
  double writes = 0;
  if (checkpoint_every > 0 && count > first + kStepRounding)
    writes = std::floor((count - first - kStepRounding) / checkpoint_every) + 1;
  return start + std::llround(count * step_ns + (writes - checkpoint_written) * checkpoint_ns);
}

double Segment::durable_steps(std::int64_t checkpoints) const {
  if (measured) return measured->durable_steps;
  return steps_to_first_checkpoint() + static_cast<double>(checkpoints - 1) * checkpoint_every;
}

double steps_to_whole(double so_far, double more) { return std::max(1e-9, std::ceil(so_far + more - 1e-6) - so_far); }

}  // namespace ganymede::sim
