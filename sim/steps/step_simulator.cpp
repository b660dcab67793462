#include "sim/steps/step_simulator.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "calibration/interval_classes.hpp"
#include "calibration/statistics.hpp"
#include "calibration/worker_variation.hpp"
#include "common/budget.hpp"
#include "common/errors.hpp"
#include "common/units.hpp"
#include "sim/steps/asynchronous_steps.hpp"
#include "sim/steps/component_split.hpp"
#include "sim/steps/interference.hpp"
#include "sim/steps/synchronous_step.hpp"

namespace ganymede::sim {
namespace {

constexpr std::size_t kMinSamplesOfTail = 50;  // recorded steps below which no tail is fitted

}  // namespace

StepSimulator::StepSimulator(const Scenario& scenario, const Configuration& configuration,
                             const std::vector<calibration::WorkloadModel>& workloads, std::uint64_t seed)
    : scenario_(scenario),
      configuration_(configuration),
      workloads_(workloads),
      seed_(seed),
      layout_(layout_workers(scenario, configuration)),
      message_(scenario.fidelity == Fidelity::message) {
  jitter_ = std::any_of(layout_.pool_of.begin(), layout_.pool_of.end(),
                        [&](std::size_t pool) { return workloads[pool].central.samples > 1; });
  if (workers() > 1 || scenario.servers.nodes > 0) connect(workloads[layout_.pool_of.front()].central);
}

void StepSimulator::share(ReductionCache& cache) {
  const Synchronization& sync = scenario_.synchronization;
  // A platform is known by the hash of its catalog; one that stands in the scenario itself has none.
  std::set<std::string> catalogs;
  for (const auto& [pointer, hash] : scenario_.file_hashes)
    if (pointer.starts_with("/platform/")) catalogs.insert(hash);
  if (!communication_ || message_ || configuration_.network != 1 || catalogs.size() != 1 ||
      sync.mode != Mode::all_reduce || !sync.variables.empty())
    return;
  communication_->share(cache, fmt::format("{} {} {}", *catalogs.begin(), sync.scheme.name(),
                                           sync.placement == Placement::component_split ? "pairs" : "whole"));
}

/// The share of the gradients that each variable has.
std::vector<double> StepSimulator::shares_of(const std::vector<Bytes>& variables, Bytes gradients) const {
  std::vector<double> out;
  Bytes sum{0};
  for (const Bytes variable : variables) {
    sum += variable;
    out.push_back(variable / gradients);
  }
  if (sum > gradients)
    throw ConfigError(
        fmt::format("{}: /synchronization/variables: found {:.0f} bytes in all, expected at most the {:.0f} "
                    "bytes of gradients of a step",
                    scenario_.file, sum.si, gradients.si));
  return out;
}

void StepSimulator::connect(const calibration::StepModel& model) {
  const Synchronization& sync = scenario_.synchronization;
  std::vector<std::int64_t> buckets;
  std::int64_t weights = 0;
  for (const auto& bucket : model.buckets) {
    buckets.push_back(bucket.bytes);
    weights += bucket.bytes;
  }
  // Between steps workers average or exchange all weights in one piece; an asynchronous server reduces nothing.
  if (sync.mode == Mode::async_parameter_server)
    buckets.clear();
  else if (sync.mode != Mode::all_reduce)
    buckets = {static_cast<std::int64_t>(std::llround(static_cast<double>(weights) * sync.secure_bytes))};
  auto sites = layout_.sites;
  Scheme scheme = sync.scheme;
  scheme.variables = shares_of(sync.variables, Bytes{static_cast<double>(weights)});
  try {
    communication_ = std::make_unique<Communication>(std::move(sites), scheme, std::move(buckets), message_, jitter_,
                                                     sync.placement == Placement::component_split,
                                                     site_links(scenario_, configuration_, layout_));
  } catch (const SchemeRefused& refused) {
    throw ConfigError(fmt::format("{}: /synchronization/scheme: {}", scenario_.file, refused.what()));
  }
}

Topology StepSimulator::topology() const {
  const std::vector<int>& sizes = layout_.node_sizes;
  const bool alike = std::all_of(sizes.begin(), sizes.end(), [&](int size) { return size == sizes.front(); });
  Topology topology = clustered(static_cast<int>(workers()), sizes.front());
  if (!alike) topology.node_sizes = sizes;
  return topology;
}

/// All workers get the slowest one's time, so that they stay alike; StepSums separates their work from waiting.
double StepSimulator::slowest_factor(std::size_t pool, const calibration::StepModel& model) const {
  const Synchronization& sync = scenario_.synchronization;
  if (sync.mode == Mode::async_parameter_server || sync.mode == Mode::gossip) return 1;
  calibration::WorkerVariation variation = workloads_[pool].worker_variation;
  // With an eager executor a flat reduction has neither hooks nor buckets, and its one copy is part of the recorded
  // step: one GPU makes it too.
  const bool eager = variation.bandwidth > 0;
  variation.seconds_per_byte *=
      sync.flat_reduction && eager ? 0 : calibration::work_on_gradients(variation, scenario_.pools[pool].gpu());
  if (sync.jitter) {
    variation.central = *sync.jitter;
    variation.seconds_per_byte = 0;
  }
  double bytes = 0;
  for (const auto& bucket : model.buckets) bytes += static_cast<double>(bucket.bytes);
  return calibration::synchronization_slowdown(
      variation, static_cast<std::size_t>(batches()), static_cast<std::size_t>(sync.backup_workers),
      sync.mode == Mode::local_sgd ? sync.local_steps : 1, bytes, model.mean_s());
}

StepSimulator::Workers StepSimulator::prepare_workers(Bound bound) const {
  Workers out;
  out.models = models_of(scenario_, configuration_, workloads_, bound);
  const std::size_t pools = out.models.by_pool.size();
  out.slowest.assign(pools, 1);
  out.host_s.assign(pools, 0);
  for (std::size_t p = 0; p < pools; ++p) {
    if (configuration_.nodes[p] == 0) continue;
    calibration::StepModel& model = out.models.by_pool[p];
    if (model.samples > 1) {
      out.stalls = take_rare_stalls(model);
      if (workers() > calibration::kBlockSteps && model.samples >= kMinSamplesOfTail) out.tail = fit_tail(model);
    }
    out.host_s[p] = mean_host_s(model);
    out.slowest[p] = slowest_factor(p, model);
    if (out.slowest[p] > 1) slow_down(model, out.slowest[p]);
  }
  if (configuration_.slow > 0) out.slow = out.models.by_pool;
  for (calibration::StepModel& model : out.slow) slow_down(model, configuration_.slow_factor);
  return out;
}

/// The first workers are those that the configuration slows down.
std::vector<const calibration::StepModel*> StepSimulator::model_of_each(const Workers& workers) const {
  std::vector<const calibration::StepModel*> models;
  for (const std::size_t pool : layout_.pool_of) {
    const bool slow = models.size() < static_cast<std::size_t>(configuration_.slow);
    models.push_back(slow ? &workers.slow[pool] : &workers.models.by_pool[pool]);
  }
  return models;
}

std::unique_ptr<StepProcess> StepSimulator::make_process(const Workers& workers) {
  const Synchronization& sync = scenario_.synchronization;
  const auto models = model_of_each(workers);
  if (sync.placement == Placement::component_split && models.size() > 1) return make_component_split(workers, models);
  if (communication_ && sync.mode != Mode::all_reduce) return make_asynchronous(models);
  return make_synchronous(models);
}

std::unique_ptr<StepProcess> StepSimulator::make_component_split(
    const Workers& workers, const std::vector<const calibration::StepModel*>& models) const {
  constexpr double kBytesPerValue = 4;  // images cross as floats
  std::vector<Seconds> reduce(models.front()->buckets.size(), Seconds{0});
  if (models.size() > 2)
    for (std::size_t bucket = 0; bucket < reduce.size(); ++bucket) reduce[bucket] = communication_->time(bucket);
  // The images of one pass cross at a time.
  const Bytes images{workers.models.batch[layout_.pool_of.front()] / scenario_.accumulation_steps *
                     std::max(1.0, scenario_.dataset.bytes_per_image) * kBytesPerValue};
  return std::make_unique<ComponentSplit>(models, scenario_.input.prefetch, communication_->across_pairs(images),
                                          std::move(reduce));
}

std::unique_ptr<StepProcess> StepSimulator::make_asynchronous(
    const std::vector<const calibration::StepModel*>& models) {
  const Synchronization& sync = scenario_.synchronization;
  const int prefetch = scenario_.input.prefetch;
  double bytes = 0;
  for (const auto& bucket : models.front()->buckets) bytes += static_cast<double>(bucket.bytes);
  const Bytes weights{bytes};
  if (sync.mode == Mode::local_sgd) {
    // Steps of all workers between two averagings: several such rounds are simulated, which takes some seconds.
    constexpr std::size_t kMaxRound = 400'000;
    if (static_cast<std::size_t>(sync.local_steps) * models.size() > kMaxRound)
      throw ConfigError(fmt::format("{}: /synchronization/local_steps: found {}, expected at most {} with {} workers",
                                    scenario_.file, sync.local_steps, kMaxRound / models.size(), models.size()));
    const Seconds masking = sync.secure_cpu_per_gb * (bytes / 1e9);
    return std::make_unique<LocalSteps>(models, prefetch, sync.local_steps, communication_->time(0) + masking);
  }
  if (sync.mode == Mode::gossip)
    return std::make_unique<GossipSteps>(models, prefetch, communication_->to_neighbour(weights));
  servers_ = communication_->route_to_servers(weights, parameter_servers(sync.scheme, topology()));
  return std::make_unique<AsyncServerSteps>(models, prefetch, servers_->traffic);
}

std::unique_ptr<StepProcess> StepSimulator::make_synchronous(const std::vector<const calibration::StepModel*>& models) {
  const Synchronization& sync = scenario_.synchronization;
  const bool remember = !jitter_ && !message_;
  Reduce reduce;
  if (communication_)
    reduce = [this, remember](std::span<const Reduction> r) { return communication_->reduce(r, remember); };
  SynchronousOptions options{.overlap = sync.overlap && !sync.flat_reduction,
                             .prefetch_depth = scenario_.input.prefetch,
                             .backup_workers = std::min<int>(sync.backup_workers, static_cast<int>(models.size()) - 1)};
  if (communication_) {
    const platforms::Gpu& gpu = scenario_.pools[layout_.pool_of.front()].gpu();
    options.interference = sync.interference.value_or(communication_->compute_share_lost(gpu));
    // "0 switches it off": then buckets cost nothing either. A flat reduction copies in the recorded step already.
    if (options.interference > 0 && !sync.flat_reduction)
      for (const auto& bucket : models.front()->buckets)
        options.bucket_work.push_back(bucket_work(Bytes{static_cast<double>(bucket.bytes)}, gpu));
  }
  if (reduce_) reduce = alone_then(options.interference > 0 && options.overlap, reduce_);
  return std::make_unique<SynchronousStep>(models, topology(), options, reduce);
}

/// `reduce`; if the step asks twice, first for what would be beside kernels of full speed, only the second time.
Reduce StepSimulator::alone_then(bool foresees, Reduce reduce) {
  if (!foresees) return reduce;
  return [this, reduce = std::move(reduce), first = true](std::span<const Reduction> r) mutable {
    first = !first;
    return first ? reduce(r) : communication_->reduce(r, !jitter_);
  };
}

StepSimulator::Live::Live(StepSimulator& simulator, Reduce reduce)
    : workers_(simulator.prepare_workers(Bound::central)),
      sampler_(simulator.sampling_options(workers_).samples, simulator.workers(), calibration::kBlockSteps,
               simulator.seed_) {
  simulator.reduce_ = std::move(reduce);
  process_ = simulator.make_process(workers_);
  if (workers_.tail) sampler_.use_tail(*workers_.tail);
  sampler_.use_stalls(workers_.stalls);
}

Seconds StepSimulator::Live::next() {
  const auto rows = sampler_.next();
  return process_->next(rows, sampler_.extra_s()).duration;
}

SamplingOptions StepSimulator::sampling_options(const Workers& workers) const {
  SamplingOptions options;
  options.workers = layout_.pool_of.size();
  options.samples = SIZE_MAX;
  for (const std::size_t pool : layout_.pool_of)
    options.samples = std::min(options.samples, workers.models.by_pool[pool].samples);
  options.run_steps = scenario_.steps;
  options.every_step = message_;
  options.precision = scenario_.precision;
  options.simulated_messages = communication_ ? communication_->simulated_messages_per_step() : 0;
  options.shown_steps = scenario_.shown_steps;
  options.seed = seed_;
  options.tail = workers.tail;
  options.stalls = workers.stalls;
  return options;
}

void StepSimulator::check_message_count() const {
  const double messages = communication_ ? communication_->work_per_step() : 0;
  check_work((messages + 1) * static_cast<double>(scenario_.steps), "message",
             fmt::format("{}: /fidelity/mode: of {} steps", scenario_.file, scenario_.steps),
             "\"sampled\", fewer steps");
}

/// The half-width of the 90 % interval of a step for what several workers and their exchange may be off.
double StepSimulator::half_width(const Workers& workers, const StepDistribution& step) const {
  if (!communication_ || step.mean.si <= 0) return 0;
  const double all = static_cast<double>(this->workers()) * step.mean.si;
  calibration::StepEvidence evidence{.link = calibration::LinkEvidence::measured,
                                     .eager = calibration::is_eager(scenario_.trace->software),
                                     .own_program = scenario_.trace->software.name == "ganymede",
                                     .several_machines = layout_.node_sizes.size() + scenario_.servers.nodes > 1,
                                     .servers = scenario_.synchronization.mode == Mode::async_parameter_server ||
                                                scenario_.synchronization.scheme.row->has_servers};
  for (std::size_t p = 0; p < step.pools.size(); ++p) {
    evidence.collectives += step.pools[p].exposed.si / all;
    evidence.workers += step.pools[p].compute.si * (workers.slowest[p] - 1) / all;
  }
  for (const Site& site : layout_.sites)
    for (const Site::Group& group : site.groups) {
      const platforms::Instance& instance = *group.instance;
      const int nodes = evidence.several_machines ? 2 : 1;
      evidence.link = std::max(
          evidence.link, calibration::link_evidence(site.platform->fabric_label(instance, nodes, group.gpus_per_node)));
      if (group.gpus_per_node > 1 && (!instance.gpu_links || instance.gpu_links->staging)) evidence.through_host = true;
    }
  if (layout_.sites.size() > 1) evidence.link = calibration::LinkEvidence::assumed;
  return calibration::half_width(evidence);
}

StepDistribution StepSimulator::simulate(Bound bound) {
  const Workers workers = prepare_workers(bound);
  const SamplingOptions options = sampling_options(workers);
  const auto steps = make_process(workers);
  StepSums sums(layout_.pool_of, workers.slowest);
  StepDistribution out;
  if (jitter_ || (message_ && bound == Bound::central)) {
    if (message_) check_message_count();
    sample_steps(*steps, options, sums, out);
    if (!message_) add_stalls(workers.stalls, out);
    out.staleness = steps->staleness();
  } else {
    repeat_steps(*steps, options, scenario_.synchronization.mode != Mode::all_reduce, sums, out);
    out.staleness = steps->staleness();
    if (bound == Bound::central) show_steps(*steps, options, out);
  }
  out.error = half_width(workers, out);
  add_work(workers, out);
  add_traffic(out);
  add_warnings(workers, out);
  return out;
}

}  // namespace ganymede::sim
