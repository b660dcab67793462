#include "sim/run/training.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "sim/ledger/nanoseconds.hpp"

namespace ganymede {
namespace {

/// Of a step, that rounding may add or take.
constexpr double kSliver = 1e-9;

std::size_t index(GpuUse use) { return static_cast<std::size_t>(use); }

}  // namespace

Segment::Place Segment::at(Nanoseconds now) const {
  double elapsed = static_cast<double>(now - start) + written * write_ns;
  const double first = every > 0 ? std::max(0.0, every - since) : 0;
  if (every == 0 || elapsed <= first * step_ns) return {.steps = elapsed / step_ns, .checkpoints = 0};
  elapsed -= first * step_ns;
  const double cycle = write_ns + every * step_ns;
  const double cycles = std::floor(elapsed / cycle);
  const double rest = elapsed - cycles * cycle;
  const double before = first + cycles * every;
  const auto complete = static_cast<std::int64_t>(cycles);
  if (rest < write_ns) return {.steps = before, .checkpoints = complete, .writing_ns = rest};
  return {.steps = before + (rest - write_ns) / step_ns, .checkpoints = complete + 1};
}

Nanoseconds Segment::time_of(double count) const {
  const double first = every > 0 ? std::max(0.0, every - since) : 0;
  double writes = 0;
  if (every > 0 && count > first + kSliver) writes = std::floor((count - first - kSliver) / every) + 1;
  return start + std::llround(count * step_ns + (writes - written) * write_ns);
}

Training::Training(const Scenario& scenario)
    : scenario_(scenario),
      pending_(scenario.pools.size(), Account{}),
      ledgers_(scenario.pools.size()),
      device_s_(scenario.pools.size(), 0) {}

void Training::begin(Segment segment, bool goes_on) {
  assert(!under_way_);
  segment_ = std::move(segment);
  segment_.written = goes_on && segment_.every > 0 ? written_ : 0;
  // An interval is a time: where steps take longer there are fewer in it, and as large a share of them is done.
  if (segment_.written > 0) {
    since_ = segment_.every;
  } else if (every_ > 0 && segment_.every > 0 && segment_.every != every_) {
    const double share = std::min(1.0, since_ / every_);
    // After a whole step, as all checkpoints.
    const double next = std::max(steps_, std::round(steps_ + (1 - share) * segment_.every));
    since_ = segment_.every - (next - steps_);
  }
  every_ = segment_.every;
  segment_.since = since_;
  under_way_ = true;
}

/// GPU time of `steps` steps that took `nanoseconds`, by pool and use: what the steps' shares leave is compute.
void Training::account(double steps, double nanoseconds, std::vector<Account>& into) const {
  const auto duration = static_cast<GpuNanoseconds>(std::llround(nanoseconds));
  for (std::size_t p = 0; p < into.size(); ++p) {
    const GpuNanoseconds workers =
        GpuNanoseconds{segment_.configuration.nodes[p]} * scenario_.pools[p].pool.gpus_per_node;
    if (workers == 0) continue;
    const PoolStep& pool = segment_.steps->pools[p];
    GpuNanoseconds rest = workers * duration;
    const auto share = [&](GpuUse use, Seconds each) {
      const auto wanted =
          static_cast<GpuNanoseconds>(std::round(std::max(0.0, each.si * steps) * kNanosecondsPerSecond));
      const GpuNanoseconds given = std::min(rest, wanted);
      into[p][index(use)] += given;
      rest -= given;
    };
    share(GpuUse::exposed_communication, pool.exposed);
    share(GpuUse::straggler, pool.straggler);
    share(GpuUse::input_stall, pool.stall);
    share(GpuUse::lost, pool.lost);
    into[p][index(GpuUse::compute)] += rest;
  }
}

void Training::settle(std::vector<Account>& accounts) {
  for (std::size_t p = 0; p < accounts.size(); ++p) {
    for (std::size_t use = 0; use < accounts[p].size(); ++use)
      if (accounts[p][use] > 0) ledgers_[p].add(static_cast<GpuUse>(use), accounts[p][use]);
    accounts[p] = Account{};
  }
}

std::int64_t Training::cut(Nanoseconds now, bool lost, double relative_error) {
  assert(under_way_);
  under_way_ = false;
  const Segment::Place place = segment_.at(now);
  const auto elapsed = static_cast<double>(now - segment_.start);
  const double writes = (static_cast<double>(place.checkpoints) - segment_.written) * segment_.write_ns;
  const double trained_ns = std::max(0.0, elapsed - writes - place.writing_ns);

  written_ = segment_.write_ns > 0 ? place.writing_ns / segment_.write_ns : 0;

  // Steps up to the last complete checkpoint make everything before them durable too.
  double fresh = place.steps, kept_ns = 0;
  if (place.checkpoints > 0) {
    const double durable = std::min(place.steps, segment_.durable_steps(place.checkpoints));
    kept_ns = std::round(std::min(trained_ns, durable * segment_.step_ns));
    account(durable, kept_ns, pending_);
    settle(pending_);
    durable_ = done_ + durable * segment_.per_step;
    durable_steps_ = steps_ + durable;
    durable_images_ = images_ + durable * segment_.steps->images;
    fresh -= durable;
    since_ = 0;
    at_risk_s_ = 0;
  }
  account(fresh, std::round(trained_ns) - kept_ns, pending_);
  const auto writing = static_cast<GpuNanoseconds>(now - segment_.start - std::llround(trained_ns));
  for (std::size_t p = 0; p < pending_.size(); ++p) {
    const GpuNanoseconds workers =
        GpuNanoseconds{segment_.configuration.nodes[p]} * scenario_.pools[p].pool.gpus_per_node;
    if (workers > 0 && writing > 0) ledgers_[p].add(GpuUse::checkpoint, workers * writing);
    device_s_[p] += segment_.steps->pools[p].device.si * place.steps;
  }
  since_ += fresh;
  at_risk_s_ += fresh * segment_.step_ns / kNanosecondsPerSecond;
  done_ += place.steps * segment_.per_step;
  steps_ += place.steps;
  images_ += place.steps * segment_.steps->images;

  const StepDistribution& d = *segment_.steps;
  const double training_s = place.steps * d.mean.si;
  totals_.steps += place.steps;
  totals_.training_s += training_s;
  for (const PoolStep& pool : d.pools) totals_.device_s += place.steps * pool.device.si;
  totals_.host_s += place.steps * d.host.si;
  totals_.flops += place.steps * d.flops;
  totals_.link_s += place.steps * d.busiest_link.si;
  totals_.reads += place.steps * d.reads;
  totals_.between_bytes += place.steps * d.between_sites.si;
  totals_.stale_steps += place.steps * d.staleness;
  totals_.checkpoints += place.checkpoints;
  for (std::size_t p = 0; p < scenario_.pools.size(); ++p) {
    const Instance& instance = scenario_.pools[p].instance();
    const double node_s = segment_.configuration.nodes[p] * elapsed / kNanosecondsPerSecond;
    const double bytes = instance.memory ? instance.memory->si : 0;
    totals_.vcpu_s += node_s * instance.vcpus;
    totals_.vcpu_reserved_s += node_s * instance.vcpus * segment_.configuration.cpus;
    totals_.memory_byte_s += node_s * bytes;
    totals_.memory_reserved_byte_s += node_s * bytes * segment_.configuration.memory;
  }
  error_.sampling_s += training_s * d.half_width;
  error_.own_s2 += place.steps * d.own_variance;
  error_.measured_s += training_s * relative_error;
  error_.low_s += place.steps * (d.mean - d.low).si;
  error_.high_s += place.steps * (d.high - d.mean).si;
  if (lost) lose();
  return place.checkpoints;
}

void Training::save() {
  assert(!under_way_);
  settle(pending_);
  durable_ = done_;
  durable_steps_ = steps_;
  durable_images_ = images_;
  since_ = 0;
  at_risk_s_ = 0;
  ++totals_.checkpoints;
}

void Training::finish() {
  assert(!under_way_);
  settle(pending_);
}

void Training::lose() {
  assert(!under_way_);
  for (std::size_t p = 0; p < pending_.size(); ++p) {
    GpuNanoseconds sum = 0;
    for (const GpuNanoseconds time : pending_[p]) sum += time;
    if (sum > 0) ledgers_[p].add(GpuUse::lost, sum);
    pending_[p] = Account{};
  }
  done_ = durable_;
  steps_ = durable_steps_;
  images_ = durable_images_;
  since_ = 0;
  lost_s_ += at_risk_s_;
  at_risk_s_ = 0;
}

double Training::done(Nanoseconds now) const {
  return under_way_ ? done_ + segment_.at(now).steps * segment_.per_step : done_;
}

Seconds Training::at_risk(Nanoseconds now) const {
  if (!under_way_) return Seconds{at_risk_s_};
  const Segment::Place place = segment_.at(now);
  const double fresh =
      place.checkpoints > 0 ? std::max(0.0, place.steps - segment_.durable_steps(place.checkpoints)) : place.steps;
  return Seconds{(place.checkpoints > 0 ? 0 : at_risk_s_) + fresh * segment_.step_ns / kNanosecondsPerSecond};
}

}  // namespace ganymede
