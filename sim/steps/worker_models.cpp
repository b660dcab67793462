#include "sim/steps/worker_models.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>

#include "common/units.hpp"
#include "sim/ledger/energy.hpp"

namespace ganymede::sim {
namespace {

const calibration::StepModel& model_at(const calibration::WorkloadModel& workload, Bound bound) {
  return bound == Bound::low ? workload.low : bound == Bound::high ? workload.high : workload.central;
}

int workers_of(const Scenario& scenario, const Configuration& configuration) {
  int workers = 0;
  for (std::size_t p = 0; p < configuration.nodes.size(); ++p)
    workers += configuration.nodes[p] * scenario.pools[p].pool.gpus_per_node;
  return workers;
}

/// Workers of a node that load a batch: one of each pair that shares out the two networks, and at least one, since a
/// GPU whose partner is on another node may be the one that loads.
int loaders_of_node(const Scenario& scenario, const ScenarioPool& pool) {
  return std::max(1, batches_loaded(scenario.synchronization, pool.pool.gpus_per_node));
}

/// Makes the device's work, and its operations, `factor` times as large.
void scale_device(calibration::StepModel& model, double factor) {
  for (auto& phase : model.phases)
    if (phase.stream == calibration::Stream::compute) {
      for (auto& time : phase.device_s) time *= factor;
      phase.flops *= factor;
    }
}

/// A capped GPU runs at a lower clock. Phases that arithmetic limits take longer in proportion; those that memory
/// limits keep their time.
void cap_power(calibration::StepModel& model, const Scenario& scenario, std::size_t stage, const platforms::Gpu& gpu) {
  const double clock = capped_clock({*gpu.idle, *gpu.peak}, *scenario.power_cap);
  if (clock == 1) return;
  const double ridge = calibration::peak_rate(*scenario.trace, gpu).si / gpu.memory_bandwidth.si;
  for (const traces::TracePhase& recorded : scenario.trace->batches[scenario.stages[stage]].phases) {
    if (recorded.flops <= ridge * (recorded.bytes_read + recorded.bytes_written)) continue;
    for (calibration::StepPhase& phase : model.phases)
      if (phase.name == recorded.name && phase.stream == calibration::Stream::compute)
        for (double& time : phase.device_s) time /= clock;
  }
}

/// Lets GPUs of one board share its power: with several GPUs of a node, both of a board work.
void share_boards(calibration::StepModel& model, const platforms::Gpu& gpu, int gpus_per_node) {
  if (gpus_per_node < 2 || gpu.board_slowdown == 0) return;
  for (auto& phase : model.phases)
    if (phase.stream == calibration::Stream::compute)
      for (double& time : phase.device_s) time /= 1 - gpu.board_slowdown;
}

/// A stage of the input pipeline that takes the same time in each of `samples` steps.
calibration::StepPhase input_stage(const char* name, std::size_t samples, double seconds) {
  calibration::StepPhase stage;
  stage.name = name;
  stage.stream = calibration::Stream::input;
  stage.gap_s.assign(samples, 0);
  stage.device_s.assign(samples, seconds);
  stage.host_s.assign(samples, 0);
  return stage;
}

/// Adds reading a batch from storage as the first stage of the pool's input pipeline. Workers that load batches share
/// the storage's rate and requests; if each node has its own volume, only with the others on their node. An object
/// store gives each node its rate, and all nodes share its requests, which are those of one prefix. A request's latency
/// is paid once for each batch, because the requests of a batch are in flight together.
void read_from_storage(WorkerModels& models, const Scenario& scenario, const Configuration& configuration,
                       std::size_t pool) {
  const InputPath& input = scenario.input;
  const platforms::Storage& storage = *input.storage;
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
  calibration::StepModel& model = models.by_pool[pool];
  model.phases.insert(model.phases.begin(), input_stage("storage", model.samples, time));
  for (auto& bucket : model.buckets) {
    ++bucket.phase;
    if (bucket.needed_by) ++*bucket.needed_by;
  }
  models.reads += requests * configuration.nodes[pool] * where.pool.gpus_per_node * loaders / workers;
}

/// Puts decoding by all of the node's processors, which its loaders share, in place of the recorded reading.
void decode_in_parallel(calibration::StepModel& model, const Scenario& scenario, const ScenarioPool& pool,
                        double images, double vcpus) {
  const double work = images * (scenario.input.decoder->time(scenario.dataset.pixels) + scenario.input.decompress).si;
  for (auto& phase : model.phases)
    if (phase.stream == calibration::Stream::input && phase.name != "storage" && phase.name != "copy")
      phase.device_s.assign(model.samples, 0);
  const double wall = work * loaders_of_node(scenario, pool) / vcpus;
  // The phase is appended last, so that the other phases keep the indices to which the buckets refer.
  model.phases.push_back(input_stage("decode", model.samples, wall));
  model.phases.back().host_s.assign(model.samples, std::max(0.0, work - wall));  // of all threads together: `work`
}

/// Decodes on the node's processors: the stages last longer if a node has fewer processors than workers that load, and
/// unpacking compressed images takes extra time.
void decode_on_host(calibration::StepModel& model, const Scenario& scenario, const ScenarioPool& pool, double images,
                    double cpus) {
  const int vcpus = pool.instance().vcpus;
  if (scenario.input.decoder) return decode_in_parallel(model, scenario, pool, images, vcpus * cpus);
  const double crowd = vcpus > 0 ? std::max(1.0, loaders_of_node(scenario, pool) / (vcpus * cpus)) : 1;
  const double unpack = images * scenario.input.decompress.si;
  bool first = true;
  for (auto& phase : model.phases) {
    if (phase.stream != calibration::Stream::input || phase.name == "storage" || phase.name == "copy") continue;
    for (auto& time : phase.device_s) time = (time + (first ? unpack : 0)) * crowd;
    first = false;
  }
  if (!first || unpack == 0) return;
  // The phase is appended last, so that the other phases keep the indices to which the buckets refer.
  model.phases.push_back(input_stage("decompress", model.samples, unpack * crowd));
}

}  // namespace

WorkerModels models_of(const Scenario& scenario, const Configuration& configuration,
                       const std::vector<calibration::WorkloadModel>& workloads, Bound bound) {
  WorkerModels models;
  const std::size_t pools = scenario.pools.size();
  models.by_pool.resize(pools);
  const double recorded =
      1.0 * scenario.trace->batches[scenario.stages[configuration.stage]].batch * scenario.accumulation_steps;
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
    calibration::StepModel& model = models.by_pool[p];
    if (scenario.synchronization.by_speed) {
      const double share = workers / speed_sum / model_at(workloads[p], Bound::central).mean_s();
      models.batch[p] = recorded * share;
      scale_device(model, share);
    }
    if (scenario.power_cap) cap_power(model, scenario, configuration.stage, scenario.pools[p].gpu());
    share_boards(model, scenario.pools[p].gpu(), scenario.pools[p].pool.gpus_per_node);
    decode_on_host(model, scenario, scenario.pools[p], models.batch[p], configuration.cpus);
    if (scenario.input.storage && !configuration.cached && scenario.dataset.bytes_per_image > 0)
      read_from_storage(models, scenario, configuration, p);
  }
  return models;
}

void slow_down(calibration::StepModel& model, double factor) {
  for (auto& phase : model.phases)
    if (phase.stream == calibration::Stream::compute)
      for (auto* times : {&phase.gap_s, &phase.device_s, &phase.host_s})
        for (double& time : *times) time *= factor;
  for (double& time : model.tail_s) time *= factor;
}

double mean_host_s(const calibration::StepModel& model) {
  double sum = 0;
  for (const auto& phase : model.phases)
    for (std::size_t i = 0; i < model.samples; ++i)
      sum += phase.host_s[i] +
             (phase.stream == calibration::Stream::input && phase.name != "storage" ? phase.device_s[i] : 0);
  return sum / static_cast<double>(model.samples);
}

namespace {

/// The link between two regions if no link is stated, because a policy only moves runs from one to the other. If nodes
/// are held in both, the link is taken to be that of AWS' regions on one continent: an assumption.
constexpr BytesPerSecond kAssumedRegionBandwidth{5e9 / 8};
constexpr Seconds kAssumedRegionLatency{0.03};

/// The platform with NICs and fabric at `share` of their bandwidth, which is that of a NIC's burst if it has one and
/// `burst` is true.
std::shared_ptr<const platforms::Platform> with_network(const std::shared_ptr<const platforms::Platform>& platform,
                                                        double share, bool burst) {
  if (share == 1 && !burst) return platform;
  auto copy = std::make_shared<platforms::Platform>(*platform);
  for (auto& instance : copy->instances)
    if (instance.nic) {
      if (burst && instance.nic->burst) instance.nic->bandwidth = *instance.nic->burst;
      instance.nic->bandwidth *= share;
      if (instance.nic->per_flow) *instance.nic->per_flow *= share;
      if (instance.nic->tcp && instance.nic->tcp->per_flow) *instance.nic->tcp->per_flow *= share;
    }
  copy->fabric.bandwidth *= share;
  for (auto& link : copy->fabric.links) link.bandwidth *= share;
  return copy;
}

/// Adds the dedicated servers after the workers of the first site. If that site is on another platform than the one
/// that the servers were chosen from, they are taken to be of its workers' instance type: an assumption.
void add_servers(const ServerNodes& servers, Site& site) {
  if (servers.nodes == 0) return;
  const platforms::Instance* instance = site.groups.front().instance;
  for (const platforms::Instance& other : site.platform->instances)
    if (other.name == servers.instance) instance = &other;
  site.groups.push_back({instance, servers.nodes, 1});
}

}  // namespace

bool nics_burst(const Scenario& scenario, const std::vector<int>& nodes) {
  if (std::accumulate(nodes.begin(), nodes.end(), scenario.servers.nodes) < 2) return false;
  for (std::size_t p = 0; p < nodes.size(); ++p)
    if (const auto& nic = scenario.pools[p].instance().nic; nodes[p] > 0 && nic && nic->burst) return true;
  return false;
}

WorkerLayout layout_workers(const Scenario& scenario, const Configuration& configuration) {
  WorkerLayout layout;
  std::vector<bool> taken(scenario.pools.size(), false);
  for (std::size_t p = 0; p < scenario.pools.size(); ++p) {
    if (taken[p] || configuration.nodes[p] == 0) continue;
    const ScenarioPool& first = scenario.pools[p];
    Site site{
        with_network(first.platform, configuration.network, configuration.nic_burst), {}, layout.pool_of.size(), 0};
    for (std::size_t q = p; q < scenario.pools.size(); ++q) {
      const ScenarioPool& pool = scenario.pools[q];
      if (taken[q] || configuration.nodes[q] == 0 || !same_place(first, pool)) continue;
      taken[q] = true;
      const platforms::Instance* instance = &site.platform->instance(pool.pool.instance);
      const int gpus = pool.pool.gpus_per_node;
      if (!site.groups.empty() && site.groups.back().instance == instance && site.groups.back().gpus_per_node == gpus)
        site.groups.back().nodes += configuration.nodes[q];
      else
        site.groups.push_back({instance, configuration.nodes[q], gpus});
      for (int node = 0; node < configuration.nodes[q]; ++node) {
        layout.node_sizes.push_back(gpus);
        layout.pool_of.insert(layout.pool_of.end(), static_cast<std::size_t>(gpus), q);
      }
    }
    site.workers = layout.pool_of.size() - site.first_worker;
    layout.sites.push_back(std::move(site));
  }
  if (!layout.sites.empty()) add_servers(scenario.servers, layout.sites.front());
  return layout;
}

std::vector<SiteLink> site_links(const Scenario& scenario, const Configuration& configuration,
                                 const WorkerLayout& layout) {
  const auto site_of = [&](std::size_t pool) {
    std::size_t site = layout.sites.size() - 1;
    const auto worker = std::find(layout.pool_of.begin(), layout.pool_of.end(), pool) - layout.pool_of.begin();
    while (layout.sites[site].first_worker > static_cast<std::size_t>(worker)) --site;
    return site;
  };
  const auto narrow = [](std::optional<SiteLink>& narrowest, const SiteLink& link) {
    if (!narrowest) narrowest = link;
    narrowest->bandwidth = std::min(narrowest->bandwidth, link.bandwidth);
    narrowest->latency = std::max(narrowest->latency, link.latency);
  };
  std::map<std::pair<std::size_t, std::size_t>, std::optional<SiteLink>> links;
  std::optional<SiteLink> narrowest;
  for (const PoolLink& link : scenario.links) {
    if (configuration.nodes[link.a] == 0 || configuration.nodes[link.b] == 0) continue;
    const bool stated = link.bandwidth.si > 0;
    const auto [low, high] = std::minmax({site_of(link.a), site_of(link.b)});
    const SiteLink known{low, high, configuration.network * (stated ? link.bandwidth : kAssumedRegionBandwidth),
                         stated ? link.latency : kAssumedRegionLatency};
    narrow(narrowest, known);
    if (low != high) narrow(links[{low, high}], known);
  }
  // A policy's links all begin at the first region, so that between two others none need be known.
  if (!narrowest) narrowest = SiteLink{0, 0, configuration.network * kAssumedRegionBandwidth, kAssumedRegionLatency};
  std::vector<SiteLink> out;
  for (std::size_t a = 0; a < layout.sites.size(); ++a)
    for (std::size_t b = a + 1; b < layout.sites.size(); ++b) {
      const auto found = links.find({a, b});
      const SiteLink& link = found == links.end() ? *narrowest : *found->second;
      out.push_back({a, b, link.bandwidth, link.latency});
    }
  return out;
}

}  // namespace ganymede::sim
