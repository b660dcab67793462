#include "sim/steps/worker_models.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "sim/ledger/energy.hpp"

namespace ganymede {
namespace {

/// Of a host's memory that the operating system and the training program leave to a cache: an assumption.
constexpr double kCacheShare = 0.7;

bool same_site(const ScenarioPool& a, const ScenarioPool& b) {
  return a.catalog == b.catalog && a.pool.region == b.pool.region && a.zone == b.zone;
}

std::shared_ptr<const Platform> slowed(const std::shared_ptr<const Platform>& platform, double share) {
  if (share == 1) return platform;
  auto copy = std::make_shared<Platform>(*platform);
  for (auto& instance : copy->instances)
    if (instance.nic) {
      instance.nic->bandwidth *= share;
      if (instance.nic->per_flow) *instance.nic->per_flow *= share;
    }
  copy->fabric.bandwidth *= share;
  return copy;
}

const StepModel& model_at(const WorkloadModel& workload, Bound bound) {
  return bound == Bound::low ? workload.low : bound == Bound::high ? workload.high : workload.central;
}

int workers_of(const Scenario& scenario, const Configuration& configuration) {
  int workers = 0;
  for (std::size_t p = 0; p < configuration.nodes.size(); ++p)
    workers += configuration.nodes[p] * scenario.pools[p].pool.gpus_per_node;
  return workers;
}

/// Of a pair of GPUs on a node one loads the batch, of a GPU that has its other half elsewhere perhaps it does.
int loaders_of_node(const Scenario& scenario, const ScenarioPool& pool) {
  return std::max(1, batches_loaded(scenario.synchronization, pool.pool.gpus_per_node));
}

void scale_device(StepModel& model, double factor) {
  for (auto& phase : model.phases)
    if (phase.stream == Stream::compute) {
      for (auto& time : phase.device_s) time *= factor;
      phase.flops *= factor;
    }
}

/// A capped GPU runs phases that its arithmetic limits at a lower clock; those that memory limits keep their time.
void cap_power(StepModel& model, const Scenario& scenario, std::size_t stage, const Gpu& gpu) {
  const double clock = capped_clock({*gpu.idle, *gpu.peak}, *scenario.power_cap);
  if (clock == 1) return;
  const double ridge = peak_rate(scenario.trace, gpu).si / gpu.memory_bandwidth.si;
  for (const TracePhase& recorded : scenario.trace.batches[scenario.stages[stage]].phases) {
    if (recorded.flops <= ridge * (recorded.bytes_read + recorded.bytes_written)) continue;
    for (StepPhase& phase : model.phases)
      if (phase.name == recorded.name && phase.stream == Stream::compute)
        for (double& time : phase.device_s) time /= clock;
  }
}

StepPhase input_stage(const char* name, std::size_t samples, double seconds) {
  StepPhase stage;
  stage.name = name;
  stage.stream = Stream::input;
  stage.gap_s.assign(samples, 0);
  stage.device_s.assign(samples, seconds);
  stage.host_s.assign(samples, 0);
  return stage;
}

/// Reading a batch from storage as a stage before the others: all who load batches share its rate and its requests,
/// those of one node where each node has a volume of its own. Of an object store each node has its rate, and all share
/// the requests, which are those of one prefix. A request's latency is paid once a batch, whose requests are in flight
/// together.
void read_from_storage(WorkerModels& models, const Scenario& scenario, const Configuration& configuration,
                       std::size_t pool) {
  const InputPath& input = scenario.input;
  const Storage& storage = *input.storage;
  const int workers = workers_of(scenario, configuration);
  const double loaders = batches_loaded(scenario.synchronization, workers);
  const double images = models.batch[pool];
  const double bytes = images * scenario.dataset.bytes_per_image * input.compressed;
  const double requests = images / input.images_per_request;
  const ScenarioPool& where = scenario.pools[pool];
  const double sharing = storage.each_node ? loaders_of_node(scenario, where) : loaders;
  double time = bytes / (storage.read.si * configuration.storage / sharing);
  const std::optional<double> iops = configuration.burst && storage.burst_iops ? storage.burst_iops : storage.iops;
  if (iops)
    time = std::max(time, requests / (*iops * configuration.storage / (storage.object_store ? loaders : sharing)));
  if (where.instance().nic)
    time = std::max(time, bytes / (where.instance().nic->bandwidth.si * where.instance().nic->count /
                                   loaders_of_node(scenario, where)));
  time += storage.latency.si;
  StepModel& model = models.by_pool[pool];
  model.phases.insert(model.phases.begin(), input_stage("storage", model.samples, time));
  for (auto& bucket : model.buckets) {
    ++bucket.phase;
    if (bucket.needed_by) ++*bucket.needed_by;
  }
  models.reads += requests * configuration.nodes[pool] * where.pool.gpus_per_node * loaders / workers;
}

/// Decoding on the node's processors: its stages last longer where there are fewer of them than loaders, one a batch,
/// and unpacking compressed images comes on top.
void decode_on_host(StepModel& model, const Scenario& scenario, const ScenarioPool& pool, double images, double cpus) {
  const int vcpus = pool.instance().vcpus;
  const double crowd = vcpus > 0 ? std::max(1.0, loaders_of_node(scenario, pool) / (vcpus * cpus)) : 1;
  const double unpack = images * scenario.input.decompress.si;
  bool first = true;
  for (auto& phase : model.phases) {
    if (phase.stream != Stream::input || phase.name == "storage" || phase.name == "copy") continue;
    for (auto& time : phase.device_s) time = (time + (first ? unpack : 0)) * crowd;
    first = false;
  }
  if (!first || unpack == 0) return;
  // After all others, so that buckets keep their places.
  model.phases.push_back(input_stage("decompress", model.samples, unpack * crowd));
}

/// Machines of their own for the weights stand behind the workers of the first site. Where that is another platform
/// than they were chosen on, they are of its workers' type: an assumption.
void add_servers(const ServerNodes& servers, Site& site) {
  if (servers.nodes == 0) return;
  const Instance* instance = site.groups.front().instance;
  for (const Instance& other : site.platform->instances)
    if (other.name == servers.instance) instance = &other;
  site.groups.push_back({instance, servers.nodes, 1});
}

}  // namespace

Crew crew_of(const Scenario& scenario, const Configuration& configuration) {
  Crew crew;
  std::vector<bool> taken(scenario.pools.size(), false);
  for (std::size_t p = 0; p < scenario.pools.size(); ++p) {
    if (taken[p] || configuration.nodes[p] == 0) continue;
    const ScenarioPool& first = scenario.pools[p];
    Site site{slowed(first.platform, configuration.network), {}, crew.pool_of.size(), 0};
    for (std::size_t q = p; q < scenario.pools.size(); ++q) {
      const ScenarioPool& pool = scenario.pools[q];
      if (taken[q] || configuration.nodes[q] == 0 || !same_site(first, pool)) continue;
      taken[q] = true;
      const Instance* instance = &site.platform->instance(pool.pool.instance);
      const int gpus = pool.pool.gpus_per_node;
      if (!site.groups.empty() && site.groups.back().instance == instance && site.groups.back().gpus_per_node == gpus)
        site.groups.back().nodes += configuration.nodes[q];
      else
        site.groups.push_back({instance, configuration.nodes[q], gpus});
      for (int node = 0; node < configuration.nodes[q]; ++node) {
        crew.node_sizes.push_back(gpus);
        crew.pool_of.insert(crew.pool_of.end(), static_cast<std::size_t>(gpus), q);
      }
    }
    site.workers = crew.pool_of.size() - site.first_worker;
    crew.sites.push_back(std::move(site));
  }
  if (!crew.sites.empty()) add_servers(scenario.servers, crew.sites.front());
  return crew;
}

std::optional<Link> narrowest_link(const Scenario& scenario, const Configuration& configuration) {
  std::optional<Link> narrowest;
  for (const PoolLink& link : scenario.links) {
    if (configuration.nodes[link.a] == 0 || configuration.nodes[link.b] == 0) continue;
    // Offers in other regions are for moving there; should both be held, they are joined as AWS' regions of one
    // continent: an assumption.
    Link known;
    known.bandwidth = link.bandwidth.si > 0 ? link.bandwidth : BytesPerSecond{5e9 / 8};
    known.bandwidth *= configuration.network;
    known.latency = link.bandwidth.si > 0 ? link.latency : Seconds{0.03};
    if (!narrowest) narrowest = known;
    narrowest->bandwidth = std::min(narrowest->bandwidth, known.bandwidth);
    narrowest->latency = std::max(narrowest->latency, known.latency);
  }
  return narrowest;
}

double cache_share(const Scenario& scenario) {
  if (!scenario.input.storage || scenario.input.cache != InputPath::Cache::memory) return 0;
  const double bytes =
      static_cast<double>(scenario.dataset.images) * scenario.dataset.bytes_per_image * scenario.input.compressed;
  double share = 0;
  for (const ScenarioPool& pool : scenario.pools)
    if (pool.instance().memory) share = std::max(share, bytes / (kCacheShare * pool.instance().memory->si));
  return share;
}

bool fits_cache(const Scenario& scenario, double memory) {
  if (scenario.input.cache == InputPath::Cache::none) return false;
  return cache_share(scenario) <= memory;
}

WorkerModels models_of(const Scenario& scenario, const Configuration& configuration,
                       const std::vector<WorkloadModel>& workloads, Bound bound) {
  WorkerModels models;
  const std::size_t pools = scenario.pools.size();
  models.by_pool.resize(pools);
  const auto recorded = static_cast<double>(scenario.trace.batches[scenario.stages[configuration.stage]].batch);
  models.batch.assign(pools, recorded);
  double speed_sum = 0;
  double workers = 0;
  for (std::size_t p = 0; p < pools; ++p) {
    if (configuration.nodes[p] == 0) continue;
    models.by_pool[p] = model_at(workloads[p], bound);
    const double count = configuration.nodes[p] * scenario.pools[p].pool.gpus_per_node;
    workers += count;
    speed_sum += count / model_at(workloads[p], Bound::central).mean_s();
  }
  for (std::size_t p = 0; p < pools; ++p) {
    if (configuration.nodes[p] == 0) continue;
    StepModel& model = models.by_pool[p];
    if (scenario.synchronization.by_speed) {
      const double share = workers / speed_sum / model_at(workloads[p], Bound::central).mean_s();
      models.batch[p] = recorded * share;
      scale_device(model, share);
    }
    if (scenario.power_cap) cap_power(model, scenario, configuration.stage, scenario.pools[p].gpu());
    decode_on_host(model, scenario, scenario.pools[p], models.batch[p], configuration.cpus);
    if (scenario.input.storage && !configuration.cached && scenario.dataset.bytes_per_image > 0)
      read_from_storage(models, scenario, configuration, p);
  }
  return models;
}

}  // namespace ganymede
