#include "sim/run/workbench.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>

#include "calibration/statistics.hpp"
#include "common/errors.hpp"
#include "sim/run/step_sampler.hpp"
#include "sim/step/component_split.hpp"
#include "sim/step/loose_steps.hpp"
#include "sim/step/synchronous_step.hpp"

namespace ganymede {
namespace {

// Without jitter steps repeat after the input queue has filled, each one like the step before the last: where the two
// places of the queue bind, long and short steps alternate. This many in a row that do so say that all further ones
// will.
constexpr int kEqualSteps = 6;
constexpr std::size_t kBlocksAtLeast = 30;   // effective samples behind an interval
constexpr std::size_t kBlocksAtMost = 200;   // 5,000 steps: enough for 0.5 % of blocks that vary by 3.5 %
constexpr double kMessagesAtMost = 2e6;      // of a sample, beyond its thirty blocks: a few seconds
constexpr double kWorkerStepsAtMost = 5e6;   // likewise: a second
constexpr double kMessagesOfARun = 1e8;      // of message fidelity: some minutes, and a duration kept of each step
constexpr std::size_t kMostSpans = 100'000;  // of the steps that are shown
constexpr std::size_t kTailNeeds = 50;       // samples

double deviation(const std::vector<double>& values) {
  double mean = 0;
  double square = 0;
  for (const double value : values) mean += value / static_cast<double>(values.size());
  for (const double value : values) square += (value - mean) * (value - mean);
  return std::sqrt(square / static_cast<double>(std::max<std::size_t>(1, values.size() - 1)));
}

void slow_down(StepModel& model, double factor) {
  for (auto& phase : model.phases)
    if (phase.stream == Stream::compute)
      for (auto* times : {&phase.gap_s, &phase.device_s, &phase.host_s})
        for (double& time : *times) time *= factor;
  for (double& time : model.tail_s) time *= factor;
}

double sum_host(const StepModel& model) {
  double sum = 0;
  for (const auto& phase : model.phases)
    for (std::size_t i = 0; i < model.samples; ++i)
      sum += phase.host_s[i] + (phase.stream == Stream::input && phase.name != "storage" ? phase.device_s[i] : 0);
  return sum / static_cast<double>(model.samples);
}

}  // namespace

/// Workers that differ are all given the slowest one's time, so that they stay alike; settle() tells work from waiting.
double Workbench::slowest_factor(const WorkloadModel& workload, Bound bound) const {
  const Synchronization& sync = scenario_.synchronization;
  const auto workers = static_cast<std::size_t>(batches_loaded(sync, static_cast<int>(crew_.pool_of.size())));
  if (workers < 2 || sync.mode == Mode::async_parameter_server || sync.mode == Mode::gossip) return 1;
  const WorkerVariation& spread = workload.worker_variation;
  double deviation = bound == Bound::low ? spread.low : bound == Bound::high ? spread.high : spread.central;
  if (sync.jitter) deviation = *sync.jitter;
  const double between = std::min(spread.between, deviation);
  const double within = deviation * deviation - between * between;
  const double steps = sync.mode == Mode::local_sgd ? sync.local_steps : 1;
  const auto waited_for = static_cast<std::size_t>(sync.backup_workers);
  return 1 + std::sqrt(between * between + within / steps) *
                 std::max(0.0, expected_slowest(workers, std::min(workers, 1 + waited_for)));
}

void Workbench::connect(const StepModel& model) {
  const Synchronization& sync = scenario_.synchronization;
  std::vector<std::int64_t> buckets;
  std::int64_t weights = 0;
  for (const auto& bucket : model.buckets) {
    buckets.push_back(bucket.bytes);
    weights += bucket.bytes;
  }
  // What is averaged or exchanged between steps is the weights, in one piece; an asynchronous server knows no rounds.
  if (sync.mode == Mode::async_parameter_server)
    buckets.clear();
  else if (sync.mode != Mode::all_reduce)
    buckets = {static_cast<std::int64_t>(std::llround(static_cast<double>(weights) * sync.secure_bytes))};
  auto sites = crew_.sites;
  if (sites.size() > 1 && message_)
    throw ConfigError(
        fmt::format("{}: /fidelity/mode: pools in several places cannot be simulated message by message; "
                    "expected \"sampled\"",
                    scenario_.file));
  communication_ = std::make_unique<Communication>(std::move(sites), sync.scheme, std::move(buckets), message_, jitter_,
                                                   sync.placement == Placement::component_split,
                                                   narrowest_link(scenario_, configuration_));
}

Topology Workbench::topology() const {
  const int first = crew_.node_sizes.front();
  const bool alike = std::all_of(crew_.node_sizes.begin(), crew_.node_sizes.end(), [&](int n) { return n == first; });
  Topology topology = clustered(static_cast<int>(crew_.pool_of.size()), first);
  if (!alike) topology.node_sizes = crew_.node_sizes;
  return topology;
}

std::vector<const StepModel*> Workbench::by_worker() const {
  std::vector<const StepModel*> models;
  for (const std::size_t pool : crew_.pool_of) {
    const bool slow = models.size() < static_cast<std::size_t>(configuration_.slow);  // the first of them
    models.push_back(slow ? &slow_models_[pool] : &models_.by_pool[pool]);
  }
  return models;
}

std::unique_ptr<StepProcess> Workbench::process() {
  const Synchronization& sync = scenario_.synchronization;
  const int prefetch = scenario_.input.prefetch;
  const auto models = by_worker();
  const std::size_t workers = models.size();
  if (sync.placement == Placement::component_split && workers > 1) {
    std::vector<Seconds> reduce(models.front()->buckets.size(), Seconds{0});
    if (workers > 2)
      for (std::size_t bucket = 0; bucket < reduce.size(); ++bucket) reduce[bucket] = communication_->time(bucket);
    const Bytes images{models_.batch[crew_.pool_of.front()] * std::max(1.0, scenario_.dataset.bytes_per_image) * 4};
    return std::make_unique<ComponentSplit>(models, prefetch, communication_->across_pairs(images), std::move(reduce));
  }
  if (communication_ && sync.mode != Mode::all_reduce) {
    double weights = 0;
    for (const auto& bucket : models.front()->buckets) weights += static_cast<double>(bucket.bytes);
    const Bytes bytes{weights};
    if (sync.mode == Mode::local_sgd) {
      const Seconds masking = sync.secure_cpu_per_gb * (weights / 1e9);
      return std::make_unique<LocalSteps>(models, prefetch, sync.local_steps, communication_->time(0) + masking);
    }
    if (sync.mode == Mode::gossip)
      return std::make_unique<GossipSteps>(models, prefetch, communication_->to_neighbour(bytes));
    servers_ = communication_->to_servers(bytes, parameter_servers(sync.scheme, topology()));
    return std::make_unique<AsyncServerSteps>(models, prefetch, servers_->traffic);
  }
  const bool remember = !jitter_ && !message_;
  Reduce reduce;
  if (communication_)
    reduce = [this, remember](std::span<const Reduction> r) { return communication_->reduce(r, remember); };
  return std::make_unique<SynchronousStep>(
      models, topology(),
      SynchronousOptions{.overlap = sync.overlap,
                         .prefetch_depth = prefetch,
                         .backup_workers = std::min<int>(sync.backup_workers, static_cast<int>(workers) - 1)},
      reduce);
}

void Workbench::add(const StepOutcome& step, double times) {
  total_ += times * step.duration;
  for (std::size_t w = 0; w < step.workers.size(); ++w) {
    const WorkerStep& worker = step.workers[w];
    PoolStep& sum = sums_[crew_.pool_of[w]];
    sum.compute += times * worker.compute;
    sum.exposed += times * worker.exposed_communication;
    sum.straggler += times * worker.straggler;
    sum.stall += times * worker.input_stall;
    sum.lost += times * worker.lost;
    sum.device += times * worker.device;
  }
}

/// From sums over `counted` steps to a mean step.
void Workbench::settle(StepDistribution& out, double counted) {
  out.mean = total_ / counted;
  out.pools = sums_;
  for (std::size_t pool = 0; pool < out.pools.size(); ++pool) {
    PoolStep& sum = out.pools[pool];
    const Seconds own = sum.compute / slowest_[pool];
    sum.straggler += sum.compute - own;
    sum.compute = own;
    sum.device = sum.device / slowest_[pool];
  }
  for (PoolStep& pool : out.pools)
    for (Seconds* part : {&pool.compute, &pool.exposed, &pool.straggler, &pool.stall, &pool.lost, &pool.device})
      *part = *part / counted;
}

/// Further steps, which count for nothing.
void Workbench::show_steps(StepProcess& process, StepDistribution& out, std::span<const std::size_t> rows) {
  process.record(&out.spans);
  for (int i = 0; i < scenario_.shown_steps && out.spans.size() < kMostSpans; ++i) process.next(rows);
  process.record(nullptr);
}

/// Without jitter: simulate until steps repeat, then count the rest as repetitions of the last two.
void Workbench::repeat_steps(StepProcess& process, StepDistribution& out) {
  const std::vector<std::size_t> rows(crew_.pool_of.size(), 0);
  const int cycle = process.cycle();
  const std::int64_t all = std::max<std::int64_t>(scenario_.steps, cycle);
  if (cycle > 1 || scenario_.synchronization.mode != Mode::all_reduce) {
    // Rounds repeat, or a queue settles.
    const int rounds = 64;
    for (int i = 0; i < cycle * rounds; ++i) process.next(rows);
    for (int i = 0; i < cycle * rounds; ++i) add(process.next(rows)), ++out.simulated;
    return settle(out, static_cast<double>(out.simulated));
  }
  int equal = 0;
  StepOutcome before;
  StepOutcome last;
  while (out.simulated < all && equal < kEqualSteps) {
    StepOutcome next = process.next(rows);
    equal = out.simulated > 1 && std::abs(next.duration / before.duration - 1) < 1e-9 ? equal + 1 : 0;
    before = std::exchange(last, std::move(next));
    add(last);
    ++out.simulated;
  }
  const std::int64_t rest = all - out.simulated;
  const std::int64_t like_last = rest / 2;
  add(before, static_cast<double>(rest - like_last));
  add(last, static_cast<double>(like_last));
  settle(out, static_cast<double>(all));
}

/// With jitter: simulate blocks of drawn steps, as many as the precision takes and is affordable, but no more than the
/// run has; message fidelity simulates each of those.
void Workbench::sample_steps(StepProcess& process, StepDistribution& out) {
  const std::size_t workers = crew_.pool_of.size();
  std::size_t samples = SIZE_MAX;
  for (const std::size_t pool : crew_.pool_of) samples = std::min(samples, models_.by_pool[pool].samples);
  const auto cycle = static_cast<std::size_t>(process.cycle());
  StepSampler sampler(samples, workers, kBlockSteps, seed_);
  if (tail_) sampler.use_tail(*tail_);
  if (message_) sampler.use_stalls(stalls_);
  const std::size_t length = (sampler.block_length() + cycle - 1) / cycle * cycle;
  const auto run_steps = static_cast<double>(scenario_.steps);
  const double messages = communication_ ? communication_->messages_a_step() : 0;
  if (message_ && (messages + 1) * run_steps > kMessagesOfARun)
    throw ConfigError(
        fmt::format("{}: /fidelity/mode: message fidelity would simulate {} steps of {:.0f} messages; expected "
                    "\"sampled\" or fewer steps",
                    scenario_.file, scenario_.steps, messages));
  const double affordable =
      std::min(kMessagesAtMost / ((communication_ ? communication_->simulated_a_step() : 0) + 1e-9),
               kWorkerStepsAtMost / static_cast<double>(workers)) /
      static_cast<double>(length);
  const auto blocks_at_most = static_cast<std::size_t>(
      std::clamp(affordable, static_cast<double>(kBlocksAtLeast), static_cast<double>(kBlocksAtMost)));
  std::vector<double> durations;
  BlockMean spread;
  if (!message_)
    for (std::size_t i = 0; i < length; ++i) {
      const auto rows = sampler.next();
      process.next(rows, sampler.extra_s());  // fills the input queue, which happens once a run
    }
  if (scenario_.shown_steps > 0) process.record(&out.spans);
  for (std::size_t block = 1; !message_ || out.simulated < scenario_.steps; ++block) {
    for (std::size_t i = 0; i < length && (!message_ || out.simulated < scenario_.steps); ++i) {
      const auto rows = sampler.next();
      const StepOutcome outcome = process.next(rows, sampler.extra_s());
      durations.push_back(outcome.duration.si);
      add(outcome);
      ++out.simulated;
      if (out.simulated == scenario_.shown_steps || out.spans.size() > kMostSpans) process.record(nullptr);
    }
    if (message_ || block < kBlocksAtLeast) continue;
    spread = block_mean(durations, length);
    out.precise = spread.half_width <= scenario_.precision * spread.mean;
    if (out.precise || block >= blocks_at_most) break;
  }
  spread = block_mean(durations, length);
  settle(out, static_cast<double>(out.simulated));
  out.half_width = message_ ? 0 : spread.half_width / spread.mean;
  // A run of fewer steps than a block has varies by its steps, which say more than so few blocks.
  const double block_variance = spread.block_deviation * spread.block_deviation * static_cast<double>(length);
  const double step_variance = deviation(durations) * deviation(durations);
  out.own_variance =
      message_ ? 0 : std::max(block_variance, run_steps < static_cast<double>(length) ? step_variance : 0);
  if (!message_) add_stalls(out);
}

/// Rare stalls of a sample are events of the run: their mean and variance are known without drawing any. In step, the
/// longest of all workers' holds them all up; on their own each holds up itself.
void Workbench::add_stalls(StepDistribution& out) {
  if (stalls_.extra_s.empty()) return;
  const Synchronization& sync = scenario_.synchronization;
  const std::size_t workers = crew_.pool_of.size();
  const auto steppers = static_cast<std::size_t>(batches_loaded(sync, static_cast<int>(workers)));
  const bool alone = workers > 1 && (sync.mode == Mode::async_parameter_server || sync.mode == Mode::gossip);
  const double per = sync.mode == Mode::local_sgd ? sync.local_steps : 1;
  const RareStalls::Moments longest = stalls_.longest(alone ? 1 : steppers, per);
  const double extra = longest.mean / per;
  out.mean += Seconds{extra};
  out.own_variance += std::max(0.0, longest.square - longest.mean * longest.mean) / per;
  std::vector<double> count(out.pools.size());
  for (const std::size_t pool : crew_.pool_of) ++count[pool];
  for (std::size_t pool = 0; pool < count.size(); ++pool) {
    const double all = extra * count[pool];
    const double own = alone ? all : all / static_cast<double>(workers);
    out.pools[pool].compute += Seconds{own};
    out.pools[pool].straggler += Seconds{all - own};
  }
}

void Workbench::warn(StepDistribution& out) const {
  const std::size_t workers = crew_.pool_of.size();
  if (tail_)
    out.warnings.push_back(fmt::format(
        "{} workers are more than a trace's blocks of {} steps tell apart: the slowest is drawn from a fitted tail "
        "(generalised Pareto, shape {:.2f}) beyond its longest tenth of steps",
        workers, kBlockSteps, tail_->shape));
  else if (jitter_ && workers > kBlockSteps)
    out.warnings.push_back(
        fmt::format("{} workers draw from a trace too short to fit its tail: the slowest of so many "
                    "is underestimated",
                    workers));
  if (communication_ && communication_->starts_late())
    out.warnings.push_back(
        fmt::format("all-reduces start at their last arrival: simulating {:.3g} messages a step for workers that "
                    "arrive at different times would take too long; the time can only be too long for it",
                    communication_->messages_a_step()));
  if (!out.precise)
    out.warnings.push_back(fmt::format("the mean step is known to {:.1f} % only, not to the {:.1f} % asked for",
                                       100 * out.half_width, 100 * scenario_.precision));
  if (!stalls_.extra_s.empty())
    out.warnings.push_back(
        fmt::format("{} of the trace's {:.0f} steps are rare stalls of {} on average: they come as events at that rate",
                    stalls_.extra_s.size(), stalls_.steps, to_string(Seconds{[&] {
                      double sum = 0;
                      for (const double stall : stalls_.extra_s) sum += stall;
                      return sum / static_cast<double>(stalls_.extra_s.size());
                    }()})));
}

StepDistribution Workbench::measure(Bound bound) {
  StepDistribution out;
  models_ = models_of(scenario_, configuration_, workloads_, bound);
  stalls_ = {};
  tail_.reset();
  total_ = {};
  sums_.assign(scenario_.pools.size(), PoolStep{});
  const std::size_t workers = crew_.pool_of.size();
  for (std::size_t p = 0; p < models_.by_pool.size(); ++p) {
    StepModel& model = models_.by_pool[p];
    if (configuration_.nodes[p] == 0 || model.samples < 2) continue;
    stalls_ = take_rare_stalls(model);
    if (workers > kBlockSteps && model.samples >= kTailNeeds) tail_ = fit_tail(model);
  }
  std::vector<double> host(models_.by_pool.size(), 0);
  slowest_.assign(models_.by_pool.size(), 1);
  for (std::size_t p = 0; p < models_.by_pool.size(); ++p) {
    if (configuration_.nodes[p] == 0) continue;
    host[p] = sum_host(models_.by_pool[p]);
    slowest_[p] = slowest_factor(workloads_[p], bound);
    if (slowest_[p] > 1) slow_down(models_.by_pool[p], slowest_[p]);
  }
  slow_models_ = configuration_.slow > 0 ? models_.by_pool : std::vector<StepModel>{};
  for (StepModel& model : slow_models_) slow_down(model, configuration_.slow_factor);
  const auto stepping = process();
  const bool sampled = jitter_ || (message_ && bound == Bound::central);
  if (sampled)
    sample_steps(*stepping, out);
  else
    repeat_steps(*stepping, out);
  out.staleness = stepping->staleness();
  if (!sampled && bound == Bound::central) show_steps(*stepping, out, std::vector<std::size_t>(workers, 0));
  out.workers = static_cast<int>(workers);
  for (const std::size_t pool : crew_.pool_of) {
    const StepModel& model = models_.by_pool[pool];
    out.images += models_.batch[pool];
    out.host += Seconds{host[pool]};
    for (const auto& phase : model.phases) out.flops += phase.flops;
  }
  // Those were sums over workers that each train a batch; a pair trains one between them, and of backup workers not all
  // count, though they work.
  const Synchronization& sync = scenario_.synchronization;
  const int loaded = batches_loaded(sync, out.workers);
  out.images = out.images * batches_a_step(sync, out.workers) / out.workers;
  out.host = out.host * loaded / out.workers;
  out.flops = out.flops * loaded / out.workers;
  out.reads = models_.reads;
  if (communication_) {
    const double per = scenario_.synchronization.mode == Mode::local_sgd ? scenario_.synchronization.local_steps : 1;
    out.busiest_link = communication_->busiest_link() / per;
    out.between_sites = communication_->between_sites() / per;
  }
  if (servers_) {
    // As if all pushed equally often; a worker beside the only server does so more often, and its link is always busy.
    out.busiest_link = std::min(servers_->busiest_link, out.mean);
    out.between_sites = servers_->between_sites;
  }
  warn(out);
  return out;
}

}  // namespace ganymede
