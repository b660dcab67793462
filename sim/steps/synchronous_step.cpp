#include "sim/steps/synchronous_step.hpp"

#include <algorithm>
#include <cassert>
#include <numeric>

#include "common/units.hpp"

namespace ganymede::sim {
namespace {

/// Index of the first phase that needs the reduced gradients of `network`, whose last bucket is ready in phase `last`.
std::size_t first_user(const calibration::StepModel& model, const std::string& network, std::size_t last,
                       bool overlap) {
  for (std::size_t phase = last + 1; phase < model.phases.size(); ++phase)
    if (model.phases[phase].stream == calibration::Stream::compute &&
        (!overlap || model.phases[phase].network == network))
      return phase;
  return model.phases.size();
}

/// When a collective is under way on one GPU: spans in ascending order that do not overlap.
struct BusySpan {
  Seconds from, to;
};

/// The moment at which work is done that would be done at `moment` if nothing slowed it down. In the spans, a share
/// `lost` of the speed is lost. For example, with half of the speed lost from 2 to 6 s, what would be done at 5 s has 3
/// s left at 2 s, does 2 s of that until 6 s and is done at 7 s.
Seconds slowed(Seconds moment, const std::vector<BusySpan>& spans, double lost) {
  for (const BusySpan& span : spans) {
    if (span.from >= moment) break;
    const Seconds alone = moment - span.from;  // work that is left when the span begins
    const Seconds done = (1 - lost) * (span.to - span.from);
    moment += alone <= done ? alone / (1 - lost) - alone : lost * (span.to - span.from);
  }
  return moment;
}

/// The k-th smallest time, k from 1.
Seconds kth_smallest(std::vector<Seconds> times, std::size_t k) {
  const auto place = times.begin() + static_cast<std::ptrdiff_t>(k) - 1;
  std::nth_element(times.begin(), place, times.end());
  return *place;
}

}  // namespace

std::vector<std::size_t> phases_that_wait(const calibration::StepModel& model, bool overlap) {
  std::vector<std::size_t> waiting;
  for (const auto& bucket : model.buckets) {
    std::size_t last = bucket.phase;
    for (const auto& other : model.buckets)
      if (other.network == bucket.network && other.needed_by == bucket.needed_by) last = std::max(last, other.phase);
    const std::size_t first = first_user(model, bucket.network, last, overlap);
    waiting.push_back(bucket.needed_by && overlap ? *bucket.needed_by : first);
  }
  return waiting;
}

InputPipeline::InputPipeline(std::size_t phases, int prefetch_depth)
    : stage_free_(phases), taken_(static_cast<std::size_t>(std::max(1, prefetch_depth))) {}

Seconds InputPipeline::next_batch(const calibration::StepModel& model, std::size_t row, Seconds start,
                                  const std::function<void(const calibration::StepPhase&, Seconds, Seconds)>& stage) {
  Seconds& slot = taken_[batches_++ % taken_.size()];
  Seconds ready = slot;  // the queue has room once the previous batch in this slot was taken
  for (std::size_t i = 0; i < model.phases.size(); ++i) {
    const calibration::StepPhase& phase = model.phases[i];
    if (phase.stream != calibration::Stream::input) continue;
    const Seconds begin = std::max(ready, stage_free_[i]);
    ready = begin + Seconds{phase.device_s[row]};
    stage_free_[i] = ready;
    if (stage) stage(phase, begin, ready);
  }
  slot = std::max(start, ready);
  return slot;
}

SynchronousStep::SynchronousStep(const calibration::StepModel& model, const Topology& topology,
                                 const SynchronousOptions& options, Reduce reduce)
    : SynchronousStep(std::vector<const calibration::StepModel*>(static_cast<std::size_t>(topology.ranks), &model),
                      topology, options, std::move(reduce)) {}

SynchronousStep::SynchronousStep(std::vector<const calibration::StepModel*> models, const Topology& topology,
                                 const SynchronousOptions& options, Reduce reduce)
    : models_(std::move(models)),
      model_(*models_.front()),
      topology_(topology),
      options_(options),
      reduce_(std::move(reduce)),
      inputs_(static_cast<std::size_t>(topology.ranks), InputPipeline(model_.phases.size(), options.prefetch_depth)),
      clock_(static_cast<std::size_t>(topology.ranks)),
      parts_(static_cast<std::size_t>(topology.ranks)) {
  assert(topology.ranks == 1 || reduce_);
  assert(models_.size() == clock_.size());
  for (int rank = 0; rank < topology.ranks; ++rank)
    node_of_.push_back(static_cast<std::size_t>(topology.node_of(rank)));
  wait_before_ = phases_that_wait(model_, options.overlap);
}

Seconds SynchronousStep::next_batch(std::size_t worker, std::size_t row, Seconds start) {
  std::function<void(const calibration::StepPhase&, Seconds, Seconds)> stage;
  if (spans_)
    stage = [&](const calibration::StepPhase& phase, Seconds begin, Seconds end) {
      show(worker, StepSpan::Kind::input, phase.name, begin, end);
    };
  return inputs_[worker].next_batch(*models_[worker], row, start, stage);
}

void SynchronousStep::run_phase(std::size_t index, std::span<const std::size_t> rows) {
  for (std::size_t worker = 0; worker < clock_.size(); ++worker) {
    const calibration::StepPhase& phase = models_[worker]->phases[index];
    const std::size_t row = rows[worker];
    const Seconds begin = clock_[worker];
    const Seconds start = begin + Seconds{phase.gap_s[row]};
    // The host's work runs beside the device's. Where one process drives the node, it queues behind the work for other
    // workers.
    Seconds host_end = start + Seconds{phase.host_s[row]};
    if (model_.serial_host && phase.host_s[row] > 0) {
      Seconds& free = host_free_[node_of_[worker]];
      host_end = std::max(start, free) + Seconds{phase.host_s[row]};
      free = host_end;
    }
    Seconds device_end = start + Seconds{phase.device_s[row]};
    if (topology_.ranks > 1)
      for (std::size_t bucket = 0; bucket < options_.bucket_work.size(); ++bucket)
        if (model_.buckets[bucket].phase == index) {
          device_end += options_.bucket_work[bucket].device;
          host_end += options_.bucket_work[bucket].host;
        }
    clock_[worker] = std::max(device_end, host_end);
    show(worker, StepSpan::Kind::host, "before " + phase.name, begin, start);
    show(worker, StepSpan::Kind::compute, phase.name, start, clock_[worker]);
    parts_[worker].compute += clock_[worker] - begin;
    parts_[worker].device += Seconds{phase.device_s[row]};

    if (topology_.ranks == 1) continue;
    for (std::size_t bucket = 0; bucket < model_.buckets.size(); ++bucket) {
      if (model_.buckets[bucket].phase != index) continue;
      const double fraction = options_.overlap ? model_.buckets[bucket].ready_fraction : 1;
      if (worker == 0) pending_.push_back({bucket, std::vector<Seconds>(clock_.size())});
      const auto mine =
          std::find_if(pending_.begin(), pending_.end(), [&](const Reduction& r) { return r.bucket == bucket; });
      // Work for the buckets is spread over the phase like their gradients.
      mine->arrivals[worker] = start + fraction * (clock_[worker] - start);
    }
  }
}

void SynchronousStep::start_reductions() {
  if (!options_.overlap) {
    // Nothing is sent before the backward pass has ended; then the buckets go out together.
    for (auto& reduction : pending_) reduction.arrivals = clock_;
  }
  if (options_.backup_workers > 0)
    for (auto& reduction : pending_) {
      const Seconds last =
          kth_smallest(reduction.arrivals, clock_.size() - static_cast<std::size_t>(options_.backup_workers));
      for (auto& arrival : reduction.arrivals) arrival = std::min(arrival, last);
    }
  if (options_.interference > 0 && options_.overlap) slow_kernels(reduce_(pending_));
  auto ends = reduce_(pending_);
  if (spans_) show_reductions(ends);
  for (std::size_t i = 0; i < pending_.size(); ++i)
    running_.push_back({pending_[i].bucket, std::move(pending_[i].arrivals), std::move(ends[i])});
  pending_.clear();
}

/// Moves the arrivals of the pending reductions, and the workers' clocks, to when slower kernels reach them. `ends` are
/// the ends of the reductions beside kernels of full speed; a GPU is busy with a reduction from its own arrival on,
/// because the kernel waits there for the other GPUs. Kernels of later phases that run beside a reduction keep their
/// speed.
void SynchronousStep::slow_kernels(const std::vector<std::vector<Seconds>>& ends) {
  std::vector<BusySpan> spans;
  for (std::size_t worker = 0; worker < clock_.size(); ++worker) {
    spans.clear();
    Seconds left = now_;
    for (std::size_t i = 0; i < pending_.size(); ++i) {
      const Seconds from = std::max(left, pending_[i].arrivals[worker]);
      left = std::max(left, ends[i][worker]);
      if (left > from) spans.push_back({from, left});
    }
    for (Reduction& reduction : pending_)
      reduction.arrivals[worker] = slowed(reduction.arrivals[worker], spans, options_.interference);
    const Seconds end = slowed(clock_[worker], spans, options_.interference);
    show(worker, StepSpan::Kind::compute, "slowed by communication", clock_[worker], end);
    parts_[worker].compute += end - clock_[worker];
    parts_[worker].device += end - clock_[worker];
    clock_[worker] = end;
  }
}

/// Records the spans of reductions. A worker enters a collective when it has issued it and has left the previous one.
void SynchronousStep::show_reductions(const std::vector<std::vector<Seconds>>& ends) const {
  for (std::size_t worker = 0; worker < clock_.size(); ++worker) {
    Seconds left = now_;
    for (const auto& reduction : running_) left = std::max(left, reduction.ends[worker]);
    for (std::size_t i = 0; i < pending_.size(); ++i) {
      show(worker, StepSpan::Kind::communication, "all-reduce " + model_.buckets[pending_[i].bucket].network,
           std::max(left, pending_[i].arrivals[worker]), ends[i][worker]);
      left = std::max(left, ends[i][worker]);
    }
  }
}

void SynchronousStep::wait_for_reductions(std::size_t phase) {
  const auto needed = [&](const auto& reduction) { return wait_before_[reduction.bucket] <= phase; };
  // A communicator runs its collectives in issue order, so those issued before the needed one run first.
  if (std::any_of(pending_.begin(), pending_.end(), needed)) start_reductions();
  if (std::none_of(running_.begin(), running_.end(), needed)) return;

  Seconds last_issued;
  for (const auto& reduction : running_)
    if (needed(reduction))
      last_issued = std::max(last_issued, *std::max_element(reduction.arrivals.begin(), reduction.arrivals.end()));
  for (std::size_t worker = 0; worker < clock_.size(); ++worker) {
    Seconds end = clock_[worker];
    for (const auto& reduction : running_)
      if (needed(reduction)) end = std::max(end, reduction.ends[worker]);
    const Seconds wait = end - clock_[worker];
    const Seconds straggler = std::clamp(last_issued - clock_[worker], Seconds{0}, wait);
    show(worker, StepSpan::Kind::straggler, "waits for other workers", clock_[worker], clock_[worker] + straggler);
    show(worker, StepSpan::Kind::exposed, "waits for communication", clock_[worker] + straggler, end);
    parts_[worker].straggler += straggler;
    parts_[worker].exposed_communication += wait - straggler;
    clock_[worker] = end;
  }
  std::erase_if(running_, needed);
}

/// Returns when all workers that are waited for have ended; the work of the others in this step is lost.
Seconds SynchronousStep::end_step(std::span<const std::size_t> rows) {
  for (std::size_t worker = 0; worker < clock_.size(); ++worker) {
    const Seconds tail{models_[worker]->tail_s[rows[worker]]};
    show(worker, StepSpan::Kind::host, "end of step", clock_[worker], clock_[worker] + tail);
    clock_[worker] += tail;
    parts_[worker].compute += tail;
  }
  const auto dropped = static_cast<std::size_t>(options_.backup_workers);
  const Seconds end = kth_smallest(clock_, clock_.size() - dropped);
  // Exactly `dropped` workers are lost, even if more end at the same time: only the batches of the others count.
  std::vector<std::size_t> order(clock_.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return clock_[a] < clock_[b]; });
  for (std::size_t place = 0; place < order.size(); ++place) {
    const std::size_t worker = order[place];
    if (place + dropped >= order.size()) {
      const Seconds device = std::min(parts_[worker].device, end - now_);
      parts_[worker] = WorkerStep{};
      parts_[worker].lost = end - now_;
      parts_[worker].device = device;
    } else {
      show(worker, StepSpan::Kind::straggler, "waits for other workers", clock_[worker], end);
      parts_[worker].straggler += end - clock_[worker];
    }
  }
  return end;
}

StepOutcome SynchronousStep::next(std::span<const std::size_t> rows, std::span<const double> extra_s) {
  assert(rows.size() == clock_.size());
  std::fill(parts_.begin(), parts_.end(), WorkerStep{});
  host_free_.assign(static_cast<std::size_t>(topology_.nodes()), now_);
  for (std::size_t worker = 0; worker < clock_.size(); ++worker) {
    clock_[worker] = next_batch(worker, rows[worker], now_);
    parts_[worker].input_stall = clock_[worker] - now_;
    show(worker, StepSpan::Kind::input_stall, "waits for a batch", now_, clock_[worker]);
    if (extra_s.empty()) continue;
    show(worker, StepSpan::Kind::host, "stall", clock_[worker], clock_[worker] + Seconds{extra_s[worker]});
    clock_[worker] += Seconds{extra_s[worker]};
    parts_[worker].compute += Seconds{extra_s[worker]};
  }
  for (std::size_t phase = 0; phase < model_.phases.size(); ++phase) {
    if (model_.phases[phase].stream != calibration::Stream::compute) continue;
    wait_for_reductions(phase);
    run_phase(phase, rows);
  }
  wait_for_reductions(model_.phases.size());

  const Seconds end = end_step(rows);
  const Seconds duration = end - now_;
  now_ = end;
  return {duration, parts_};
}

}  // namespace ganymede::sim
