// Training as part of a run's life: segments of steps, checkpoints, pauses.

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <numeric>

#include "common/errors.hpp"
#include "sim/ledger/nanoseconds.hpp"
#include "sim/run/life.hpp"
#include "sim/steps/dataset_cache.hpp"

namespace ganymede {
namespace {

double mtbf_of(const Scenario& scenario, const std::vector<int>& nodes) {
  double rate = 0;
  for (std::size_t p = 0; p < nodes.size(); ++p) rate += nodes[p] * hazard_rate(scenario, scenario.pools[p]);
  return rate;
}

}  // namespace

Configuration Life::configuration() const {
  Configuration configuration;
  configuration.nodes = fleet_.members();
  configuration.cpus = decision_.cpus;
  configuration.memory = decision_.memory;
  const double done = training_.done(now_);
  configuration.stage = stage_at(done);
  for (const Slow& slow : slow_) {
    if (slow.kind == InjectedEvent::Kind::network) configuration.network = std::min(configuration.network, slow.factor);
    if (slow.kind == InjectedEvent::Kind::storage) configuration.storage = std::min(configuration.storage, slow.factor);
    if (slow.kind == InjectedEvent::Kind::straggler) {
      configuration.slow += slow.nodes * scenario_.pools[0].pool.gpus_per_node;
      configuration.slow_factor = std::max(configuration.slow_factor, slow.factor);
    }
  }
  int workers = 0;
  for (std::size_t p = 0; p < configuration.nodes.size(); ++p)
    workers += configuration.nodes[p] * scenario_.pools[p].pool.gpus_per_node;
  configuration.slow = std::min(configuration.slow, workers);
  if (scenario_.input.storage) {
    const double each = scenario_.target == Target::steps ? static_cast<double>(scenario_.images_a_step(workers)) : 1;
    configuration.cached = fits_cache(scenario_, decision_.memory) &&
                           done * each >= static_cast<double>(scenario_.dataset.images) - slack() * each;
    configuration.burst = !configuration.cached && credits_left_ && scenario_.input.storage->burst_iops.has_value();
  }
  return configuration;
}

Nanoseconds Life::write_time() const {
  const auto& checkpoints = scenario_.checkpoints;
  if (!checkpoints.storage) return 0;
  double share = 1;
  for (const Slow& slow : slow_)
    if (slow.kind == InjectedEvent::Kind::storage) share = std::min(share, slow.factor);
  return to_nanoseconds(checkpoints.storage->latency + checkpoints.bytes / (share * checkpoints.storage->write));
}

Nanoseconds Life::read_time() const {
  const auto& checkpoints = scenario_.checkpoints;
  return checkpoints.storage
             ? to_nanoseconds(checkpoints.storage->latency + checkpoints.bytes / checkpoints.storage->read)
             : 0;
}

// Young (1974) and Daly (FGCS 22, 2006): sqrt(2 C M) - C between the end of a checkpoint of cost C and the start of the
// next, for a mean time M between losses.
double Life::steps_between_checkpoints(const StepDistribution& steps) const {
  const auto& checkpoints = scenario_.checkpoints;
  double seconds = 0;
  switch (checkpoints.every) {
    case Checkpoints::Every::never:
      return 0;
    case Checkpoints::Every::epochs:
      return std::max(1.0, std::ceil(static_cast<double>(scenario_.dataset.images) / steps.images) *
                               static_cast<double>(checkpoints.epochs));
    case Checkpoints::Every::interval:
      seconds = checkpoints.interval.si;
      break;
    case Checkpoints::Every::daly: {
      const double rate = mtbf_of(scenario_, fleet_.members());
      if (rate == 0) return 0;
      const double cost = to_seconds(write_time()).si;
      seconds = std::max(cost, std::sqrt(2 * std::max(cost, 1e-3) / rate) - cost);
      break;
    }
  }
  return std::max(1.0, std::round(seconds / steps.mean.si));
}

/// `goes_on`: the same nodes train on, so that a checkpoint that they were writing goes on too.
void Life::begin_segment(bool goes_on) {
  state_ = State::training;
  Segment segment;
  segment.start = now_;
  segment.configuration = configuration();
  const StepDistribution& steps = times_.distribution(segment.configuration);
  segment.steps = &steps;
  segment.step_ns = steps.mean.si * kNanosecondsPerSecond;
  const auto images = static_cast<double>(scenario_.dataset.images);
  segment.per_step = scenario_.target == Target::steps    ? 1
                     : scenario_.target == Target::images ? steps.images
                                                          : images / std::ceil(images / steps.images - 1e-9);
  segment.every = steps_between_checkpoints(steps);
  segment.write_ns = static_cast<double>(write_time());
  most_gpus_ = std::max(most_gpus_, steps.workers);
  const double done = training_.done(now_);
  const std::size_t stage = stage_at(done);
  if (stage != stage_ && started_) log("stage", "", 0, scenario_.trace.batches[scenario_.stages[stage]].stage);
  stage_ = stage;
  double until = stage_ends_[stage];
  if (scenario_.input.storage && !segment.configuration.cached && fits_cache(scenario_, decision_.memory)) {
    const double first_epoch = scenario_.target == Target::steps ? std::ceil(images / steps.images) : images;
    if (done < first_epoch - slack()) until = std::min(until, first_epoch);
  }
  // Whole steps, those counted that other segments have begun.
  const double so_far = training_.steps();
  const double left = std::max(1e-9, std::ceil(so_far + (until - done) / segment.per_step - 1e-6) - so_far);
  constexpr double kLongest_s = 9e9;
  if (!(to_seconds(now_).si + left * (segment.step_ns + (segment.every > 0 ? segment.write_ns / segment.every : 0)) /
                                  kNanosecondsPerSecond <
        kLongest_s))
    throw ConfigError(fmt::format("{}: the run would take {}, longer than can be accounted for", scenario_.file,
                                  to_string(left * steps.mean)));
  training_.begin(segment, goes_on);
  ++generation_;
  post(training_.segment().time_of(left), Event::Kind::reached, 0, generation_);
  if (segment.configuration.burst) {
    const Storage& storage = *scenario_.input.storage;
    double volumes = 1;
    if (storage.each_node)
      volumes = std::accumulate(segment.configuration.nodes.begin(), segment.configuration.nodes.end(), 0.0);
    const double demand = steps.reads / steps.mean.si / volumes;
    if (demand > storage.iops.value_or(demand))
      post(now_ + to_nanoseconds(Seconds{std::min(8e9, storage.burst_credits / (demand - *storage.iops))}),
           Event::Kind::out_of_credits, 0, generation_);
  }
}

void Life::cut(bool lost) {
  assert(state_ == State::training);
  const Segment& segment = training_.segment();
  const StepDistribution* steps = segment.steps;
  if (!trained_.empty() && trained_.back().to == segment.start)
    trained_.back().to = now_;
  else
    trained_.push_back({segment.start, now_});
  const double before = training_.totals().steps;
  double error = 0;
  for (std::size_t p = 0; p < segment.configuration.nodes.size(); ++p)
    if (segment.configuration.nodes[p] > 0) {
      const WorkloadSummary& workload = times_.workload(p, segment.configuration.stage);
      if (workload.provenance == Provenance::measured) error = std::max(error, workload.relative_error);
    }
  const std::int64_t checkpoints = training_.cut(now_, lost, error);
  used_[steps] += training_.totals().steps - before;
  ++generation_;
  if (checkpoints > 0) log("checkpoint", "", 0, "", checkpoints);
  state_ = State::idle;
}

/// Steps are slower or faster from now on; nothing ends.
void Life::change_pace() {
  cut(false);
  begin_segment(true);
}

/// The segment's last step is done: the target, a stage or the first epoch is complete.
void Life::reached() {
  cut(false);
  if (training_.done(now_) < target_ - slack()) return begin_segment(true);
  if (scenario_.checkpoints.every != Checkpoints::Every::never) return pause(State::saving, write_time());
  training_.finish();
  done_ = true;
  log("finished");
}

void Life::pause(State state, Nanoseconds length) {
  state_ = state;
  pause_end_ = now_ + length;
  load_from_ = pause_end_;
  ++generation_;
  post(pause_end_, Event::Kind::resume, 0, generation_);
}

void Life::resume() {
  if (state_ == State::saving) {
    training_.save();
    log("checkpoint", "", 0, "");
    if (training_.done(now_) >= target_ - slack()) {
      done_ = true;
      log("finished");
      return;
    }
    state_ = State::idle;
    // Whoever was waiting for it to be written may go.
    apply(decision_);
    if (state_ == State::idle) reconcile();
    return;
  }
  loads_ = false;
  if (!started_) log("ready");
  if (lost_since_) log("restored");
  started_ = true;
  lost_since_ = false;
  begin_segment();
}

}  // namespace ganymede
