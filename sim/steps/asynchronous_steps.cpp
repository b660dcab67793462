#include "sim/steps/asynchronous_steps.hpp"

#include <algorithm>
#include <cassert>

#include "common/units.hpp"

namespace ganymede::sim {
namespace {

WorkerStep& operator+=(WorkerStep& sum, const WorkerStep& more) {
  sum.compute += more.compute;
  sum.exposed_communication += more.exposed_communication;
  sum.straggler += more.straggler;
  sum.input_stall += more.input_stall;
  sum.lost += more.lost;
  sum.device += more.device;
  return sum;
}

double extra_seconds(std::span<const double> extra_s, std::size_t worker) {
  return extra_s.empty() ? 0 : extra_s[worker];
}

/// Advances `now` to the latest clock and returns by how much.
Seconds advance(Seconds& now, const std::vector<Seconds>& clock) {
  const Seconds latest = *std::max_element(clock.begin(), clock.end());
  const Seconds duration = std::max(Seconds{0}, latest - now);
  now = std::max(now, latest);
  return duration;
}

}  // namespace

IndependentWorkers::IndependentWorkers(const std::vector<const calibration::StepModel*>& models, int prefetch_depth)
    : own_clock_(models.size()) {
  workers_.reserve(models.size());
  for (const calibration::StepModel* model : models)
    workers_.emplace_back(*model, flat(1), SynchronousOptions{.prefetch_depth = prefetch_depth}, Reduce{});
}

StepOutcome IndependentWorkers::next(std::size_t worker, std::size_t row, double extra_s, Seconds start) {
  std::vector<StepSpan> spans;
  workers_[worker].record(spans_ ? &spans : nullptr);
  StepOutcome step = workers_[worker].next({&row, 1}, {&extra_s, 1});
  for (StepSpan& span : spans) {
    span.worker = worker;
    span.start += start - own_clock_[worker];
    span.end += start - own_clock_[worker];
    spans_->push_back(std::move(span));
  }
  own_clock_[worker] += step.duration;
  return step;
}

LocalSteps::LocalSteps(const std::vector<const calibration::StepModel*>& models, int prefetch_depth, int local_steps,
                       Seconds averaging)
    : workers_(models, prefetch_depth), local_steps_(local_steps), averaging_(averaging), clock_(models.size()) {
  assert(local_steps >= 1);
}

StepOutcome LocalSteps::next(std::span<const std::size_t> rows, std::span<const double> extra_s) {
  StepOutcome step;
  for (std::size_t worker = 0; worker < clock_.size(); ++worker) {
    const StepOutcome own = workers_.next(worker, rows[worker], extra_seconds(extra_s, worker), clock_[worker]);
    clock_[worker] += own.duration;
    step.workers.push_back(own.workers.front());
  }
  if (++done_ == local_steps_) {
    done_ = 0;
    const Seconds last = *std::max_element(clock_.begin(), clock_.end());
    for (std::size_t worker = 0; worker < clock_.size(); ++worker) {
      show(worker, StepSpan::Kind::straggler, "waits for other workers", clock_[worker], last);
      show(worker, StepSpan::Kind::communication, "averaging", last, last + averaging_);
      show(worker, StepSpan::Kind::exposed, "waits for communication", last, last + averaging_);
      step.workers[worker].straggler += last - clock_[worker];
      step.workers[worker].exposed_communication += averaging_;
      clock_[worker] = last + averaging_;
    }
  }
  step.duration = advance(now_, clock_);
  return step;
}

GossipSteps::GossipSteps(const std::vector<const calibration::StepModel*>& models, int prefetch_depth, Seconds exchange)
    : workers_(models, prefetch_depth), exchange_(exchange), clock_(models.size()) {}

StepOutcome GossipSteps::next(std::span<const std::size_t> rows, std::span<const double> extra_s) {
  StepOutcome step;
  const std::size_t count = clock_.size();
  for (std::size_t worker = 0; worker < count; ++worker) {
    const StepOutcome own = workers_.next(worker, rows[worker], extra_seconds(extra_s, worker), clock_[worker]);
    clock_[worker] += own.duration;
    step.workers.push_back(own.workers.front());
  }
  // Pairs are (0,1), (2,3) … and in the next step (1,2), (3,4) … round the ring; one worker may be left over.
  for (std::size_t a = odd_ ? 1 : 0; count > 1 && a < count; a += 2) {
    const std::size_t b = (a + 1) % count;
    if (b == 0 && (count % 2 != 0 || !odd_)) break;
    const Seconds start = std::max(clock_[a], clock_[b]);
    for (const std::size_t worker : {a, b}) {
      show(worker, StepSpan::Kind::straggler, "waits for its neighbour", clock_[worker], start);
      show(worker, StepSpan::Kind::communication, "exchange", start, start + exchange_);
      show(worker, StepSpan::Kind::exposed, "waits for communication", start, start + exchange_);
      step.workers[worker].straggler += start - clock_[worker];
      step.workers[worker].exposed_communication += exchange_;
      clock_[worker] = start + exchange_;
    }
  }
  odd_ = !odd_;
  step.duration = advance(now_, clock_);
  return step;
}

AsyncServerSteps::AsyncServerSteps(const std::vector<const calibration::StepModel*>& models, int prefetch_depth,
                                   ServerTraffic traffic)
    : independent_(models, prefetch_depth),
      traffic_(std::move(traffic)),
      workers_(models.size()),
      free_(traffic_.links) {
  assert(traffic_.push.size() == models.size() && traffic_.fetch.size() == models.size());
}

/// Returns when the transfer has ended.
Seconds AsyncServerSteps::carry(const ServerTraffic::Transfer& transfer, Seconds start) {
  Seconds end = start + transfer.alone;
  for (const auto& use : transfer.uses) {
    Seconds& free = free_[use.link];
    free = std::max(free, start) + use.busy;
    end = std::max(end, free);
  }
  return end + transfer.latency;
}

/// The servers have added the gradients that worker `who` pushed, and send it the weights.
void AsyncServerSteps::fetch(std::size_t who, StepOutcome& step) {
  Worker& worker = workers_[who];
  stale_ += static_cast<double>(updates_ - worker.version);
  worker.version = ++updates_;
  const Seconds fetched = carry(traffic_.fetch[who], worker.pushed);
  show(who, StepSpan::Kind::communication, "push", worker.push, worker.pushed);
  show(who, StepSpan::Kind::communication, "fetch", worker.pushed, fetched);
  show(who, StepSpan::Kind::exposed, "waits for the server", worker.push, fetched);
  worker.parts.exposed_communication += fetched - worker.push;
  worker.clock = fetched;
  worker.state = Worker::State::idle;
  step.workers[who] += worker.parts;
  step.duration += std::max(Seconds{0}, fetched - now_);
  now_ = std::max(now_, fetched);
}

StepOutcome AsyncServerSteps::next(std::span<const std::size_t> rows, std::span<const double> extra_s) {
  StepOutcome step;
  step.workers.resize(workers_.size());
  for (std::size_t update = 0; update < workers_.size();) {
    for (std::size_t w = 0; w < workers_.size(); ++w) {
      Worker& worker = workers_[w];
      if (worker.state != Worker::State::idle) continue;
      const StepOutcome own = independent_.next(w, rows[w], extra_seconds(extra_s, w), worker.clock);
      worker.parts = own.workers.front();
      worker.push = worker.clock + own.duration;
      worker.state = Worker::State::pushing;
    }
    // Transfers are simulated in the order of their starts, so that a link carries the earlier transfer first.
    const auto next = std::min_element(workers_.begin(), workers_.end(), [](const Worker& a, const Worker& b) {
      return a.next_transfer() < b.next_transfer();
    });
    const auto who = static_cast<std::size_t>(next - workers_.begin());
    if (next->state == Worker::State::pushing) {
      next->pushed = carry(traffic_.push[who], next->push);
      next->state = Worker::State::fetching;
    } else {
      fetch(who, step);
      ++update;
    }
  }
  return step;
}

double AsyncServerSteps::staleness() const { return updates_ == 0 ? 0 : stale_ / static_cast<double>(updates_); }

}  // namespace ganymede::sim
