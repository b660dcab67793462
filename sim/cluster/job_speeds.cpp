#include "sim/cluster/job_speeds.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>

#include "calibration/workload_model.hpp"
#include "common/errors.hpp"
#include "common/json.hpp"
#include "common/json_value.hpp"
#include "sim/run/run_configuration.hpp"
#include "sim/steps/dataset_cache.hpp"
#include "sim/steps/gradient_passes.hpp"
#include "sim/steps/site_communication.hpp"
#include "sim/steps/worker_models.hpp"

namespace ganymede::sim {
namespace {

constexpr double kNoTime = std::numeric_limits<double>::infinity();
constexpr double kRounding = 1e-9;  // part of an interval between checkpoints
// Other shapes take the steps of the nearest if so many were compared with theirs, and none was further off.
constexpr int kLeastCompared = 24;
constexpr double kMostShapeError = 0.05;

PlaceShape tight_shape(const ScenarioPool& pool, int gpus) {
  PlaceShape shape(static_cast<std::size_t>(gpus / pool.pool.gpus_per_node), pool.pool.gpus_per_node);
  if (gpus % pool.pool.gpus_per_node > 0) shape.push_back(gpus % pool.pool.gpus_per_node);
  return shape;
}

/// The part of "platform" that places a job on nodes of this shape.
Json platform_of(const Json& pool, const PlaceShape& shape) {
  Json pools = Json::array();
  for (std::size_t i = 0; i < shape.size();) {
    const auto last = static_cast<std::size_t>(std::find_if(shape.begin() + static_cast<std::ptrdiff_t>(i), shape.end(),
                                                            [&](int gpus) { return gpus != shape[i]; }) -
                                               shape.begin());
    Json part = pool;
    part["nodes"] = last - i;
    part["gpus_per_node"] = shape[i];
    part["name"] = fmt::format("nodes with {} GPUs", shape[i]);
    pools.push_back(std::move(part));
    i = last;
  }
  return {{"pools", std::move(pools)}};
}

JobReading reading_of(const Scenario& scenario, ScenarioSteps& steps) {
  JobReading out;
  if (!scenario.input.storage) return out;
  const platforms::Storage& storage = *scenario.input.storage;
  Configuration cold = all_nodes(scenario);
  cold.cached = false;
  const StepDistribution& reading = steps.distribution(cold);
  out.steps = &reading;
  out.step_s = reading.mean.si;
  out.requests = reading.reads;
  // The first epoch ends with a whole step.
  const double steps_of_epoch = std::ceil(static_cast<double>(scenario.dataset.images) / reading.images);
  out.images = fits_cache(scenario) ? steps_of_epoch * reading.images : kNoTime;
  if (storage.each_node || storage.object_store) return out;
  const double images = reading.reads * scenario.input.images_per_request;
  out.store_s = images * scenario.dataset.bytes_per_image * scenario.input.compressed / storage.read.si;
  if (storage.iops) out.store_s = std::max(out.store_s, reading.reads / *storage.iops);
  out.latency_s = storage.latency.si;
  // Volumes of other sizes have other rates, and are others.
  out.store = fmt::format("{} {:.17g} {:.17g}", storage.name, storage.read.si, storage.iops.value_or(0));
  return out;
}

/// The sizes of the gradients' buckets of a step.
std::vector<std::int64_t> buckets_of(const Scenario& scenario) {
  const ScenarioPool& pool = scenario.pools.front();
  const platforms::Instance& instance = pool.instance();
  const calibration::WorkloadModel model =
      in_passes(calibration::workload_on(*scenario.trace, scenario.batch(), pool.gpu(),
                                         instance.host_link ? &*instance.host_link : nullptr),
                scenario);
  std::vector<std::int64_t> buckets;
  for (const calibration::StepBucket& bucket : model.central.buckets) buckets.push_back(bucket.bytes);
  return buckets;
}

/// Who sends what to whom, without times.
CollectiveTraffic traffic_between(const Scenario& scenario, const Site& site,
                                  const std::vector<std::int64_t>& buckets) {
  std::vector<NodeGroup> groups;
  for (const auto& group : site.groups) groups.push_back({group.instance, group.nodes, group.gpus_per_node});
  CollectiveTraffic traffic;
  traffic.topology = FabricGraph(*site.platform, groups).topology();
  const Scheme& scheme = scenario.synchronization.scheme;
  traffic.between = rank_traffic(scheme, traffic.topology, buckets);
  for (const std::int64_t bytes : buckets)
    traffic.messages +=
        static_cast<double>(scheme.plan({traffic.topology, bytes, Collective::all_reduce, ""}).messages());
  return traffic;
}

std::shared_ptr<const CollectiveTraffic> traffic_of(const Scenario& scenario, ScenarioSteps& steps, double step_s) {
  const Site site = layout_workers(scenario, all_nodes(scenario)).sites.front();
  const auto buckets = buckets_of(scenario);
  const Scheme& scheme = scenario.synchronization.scheme;
  const auto time_on = [&](const Site& on) {
    const SiteCommunication communication(on, scheme, buckets, false, false, false);
    double sum_s = 0;
    for (std::size_t i = 0; i < buckets.size(); ++i) sum_s += communication.time(i).si;
    return sum_s;
  };
  const double alone_s = time_on(site);
  if (alone_s <= 0) return nullptr;
  auto traffic = std::make_shared<CollectiveTraffic>(traffic_between(scenario, site, buckets));
  traffic->alone_s = alone_s;
  if (scenario.synchronization.overlap && !scenario.synchronization.flat_reduction &&
      scenario.pools.front().pool.nodes + scenario.pools.size() > 2) {
    // With half of the network the collectives that cross it take up to twice as long.
    const double slow_s = time_on(layout_workers(scenario, all_nodes(scenario, 0.5)).sites.front());
    const double longer_s = slow_s - alone_s;
    if (longer_s > 1e-9 * slow_s)
      traffic->exposed =
          std::clamp((steps.distribution(all_nodes(scenario, 0.5)).mean.si - step_s) / longer_s, 0.0, 1.0);
  }
  return traffic;
}

/// How many GPUs would have to move to another node to make one shape of the other, which has as many nodes.
int distance(const PlaceShape& a, const PlaceShape& b) {
  int sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += std::abs(a[i] - b[i]);
  return sum / 2;
}

}  // namespace

Configuration all_nodes(const Scenario& scenario, double network) {
  Configuration configuration;
  for (const ScenarioPool& pool : scenario.pools) configuration.nodes.push_back(pool.pool.nodes);
  configuration.stage = scenario.stages.size() - 1;
  configuration.network = network;
  return configuration;
}

Scenario JobSpeeds::scenario(const ClusterWorkload& workload, std::size_t pool, const PlaceShape& shape) {
  Json json = workload.scenario->value();
  json["platform"] = platform_of(cluster_.pool_json[pool], shape);
  for (const char* key : {"policy", "faults", "deadline", "budget", "billing", "power_cap", "evaluation"})
    json.erase(key);
  json["fidelity"] = {{"mode", "sampled"}, {"precision", cluster_.precision}};
  return read_scenario(JsonNode::wrap(std::move(json), workload.scenario->file(), workload.scenario->directory()),
                       inputs_);
}

void JobSpeeds::warn(const std::string& text) {
  if (std::find(warnings_.begin(), warnings_.end(), text) == warnings_.end()) warnings_.push_back(text);
}

JobSpeeds::Entry JobSpeeds::simulated(const ClusterWorkload& workload, std::size_t pool, const PlaceShape& shape) {
  std::shared_ptr<const Scenario> here;
  try {
    here = std::make_shared<const Scenario>(scenario(workload, pool, shape));
  } catch (const Infeasible& error) {
    warn(error.what());
    return {};
  }
  Shapes& known = shapes_[{&workload, pool}];
  auto& like = known.by_size[{std::accumulate(shape.begin(), shape.end(), 0), shape.size()}];
  const auto nearest = std::min_element(like.begin(), like.end(), [&](const auto& a, const auto& b) {
    return distance(a.first, shape) < distance(b.first, shape);
  });
  if (nearest != like.end() && known.count >= kMostShapes && known.compared >= kLeastCompared &&
      known.error <= kMostShapeError)
    return borrowed(nearest->second, here, known.error);
  ScenarioSteps steps(*here, steps_);
  const StepDistribution& alone = steps.distribution(all_nodes(*here));
  ++known.count;
  if (nearest != like.end()) {
    ++known.compared;
    known.error = std::max(known.error, std::abs(nearest->second.step_s / alone.mean.si - 1));
  }
  Entry entry{true, {}};
  entry.speed.scenario = here;
  entry.speed.steps = &alone;
  entry.speed.step_s = alone.mean.si;
  entry.speed.step_images = alone.images;
  entry.speed.step_work = static_cast<double>(here->images_a_step(here->workers()));
  entry.speed.work_per_s = entry.speed.step_work / alone.mean.si;
  entry.speed.reading = reading_of(*here, steps);
  if (!cluster_.contention) entry.speed.reading.store_s = 0;
  const Synchronization& sync = here->synchronization;
  if (cluster_.contention && here->workers() > 1) {
    if (sync.mode == Mode::all_reduce && sync.placement == Placement::data_parallel)
      entry.speed.traffic = traffic_of(*here, steps, entry.speed.step_s);
    else
      warn(fmt::format("jobs of the workload {} do not share links with others: only all-reduce of whole replicas does",
                       workload.name));
  }
  like.emplace_back(shape, entry.speed);
  return entry;
}

JobSpeeds::Entry JobSpeeds::borrowed(const JobSpeed& from, std::shared_ptr<const Scenario> here, double error) {
  Entry entry{true, from};
  entry.speed.borrowed_error = error;
  borrowed_error_ = std::max(borrowed_error_, error);
  if (from.traffic) {
    auto traffic = std::make_shared<CollectiveTraffic>(
        traffic_between(*here, layout_workers(*here, all_nodes(*here)).sites.front(), buckets_of(*here)));
    traffic->alone_s = from.traffic->alone_s;
    traffic->exposed = from.traffic->exposed;
    entry.speed.traffic = std::move(traffic);
  }
  entry.speed.scenario = std::move(here);
  ++borrowed_;
  return entry;
}

JobSpeeds::Entry JobSpeeds::stated(int gpus, double step_s, double step_work) {
  StepDistribution& steps = stated_.emplace_back();
  steps.mean = steps.low = steps.high = Seconds{step_s};
  steps.pools.resize(1);
  steps.pools.front().device = Seconds{gpus * step_s};
  steps.workers = gpus;
  return {true, {&steps, step_s, 0, step_work, step_work / step_s}};
}

JobSpeeds::Entry JobSpeeds::measured(const ClusterWorkload& workload, std::size_t pool, const PlaceShape& shape) {
  const int gpus = std::accumulate(shape.begin(), shape.end(), 0);
  const ScenarioPool& where = cluster_.pools[pool];
  const bool spread = shape.size() > tight_shape(where, gpus).size();
  const auto rate = cluster_.throughputs->alone(where.gpu().family, {workload.model, workload.batch}, gpus, spread);
  return rate ? stated(gpus, gpus / *rate, gpus) : Entry();
}

const JobSpeed* JobSpeeds::speed(const ClusterJob& job, std::size_t pool, const PlaceShape& shape) {
  const ClusterWorkload& workload = cluster_.workloads[job.workload];
  const bool timed = !workload.scenario && workload.model.empty();
  const auto [known, is_new] = entries_.try_emplace({job.workload, pool, shape});
  Entry& entry = known->second;
  if (is_new && timed) entry = stated(std::accumulate(shape.begin(), shape.end(), 0), 1, 1);
  if (is_new && !timed) entry = workload.scenario ? simulated(workload, pool, shape) : measured(workload, pool, shape);
  return entry.possible ? &entry.speed : nullptr;
}

const Scenario& JobSpeeds::asked(const ClusterJob& job) {
  const auto [known, is_new] = asked_.try_emplace({job.workload, job.gpus});
  if (!is_new) return known->second;
  std::string why;
  for (std::size_t pool = 0; pool < cluster_.pools.size(); ++pool) {
    const ScenarioPool& where = cluster_.pools[pool];
    if (job.gpus > where.pool.nodes * where.pool.gpus_per_node) continue;
    try {
      known->second = scenario(cluster_.workloads[job.workload], pool, tight_shape(where, job.gpus));
      return known->second;
    } catch (const Infeasible& error) {
      why = error.what();
    }
  }
  throw Infeasible(fmt::format("{}: the job {} can run in no pool: {}", cluster_.file, job.name, why));
}

double JobSpeeds::work_of(const ClusterJob& job) {
  const ClusterWorkload& workload = cluster_.workloads[job.workload];
  if (!workload.model.empty()) return job.steps;
  if (!workload.scenario) return job.duration_s;
  const Scenario& scenario = asked(job);
  const double steps = job.steps > 0 ? job.steps : static_cast<double>(scenario.steps);
  return steps * static_cast<double>(scenario.images_a_step(job.gpus));
}

double JobSpeeds::save_s(const ClusterJob& job) {
  if (cluster_.preemption.save) return cluster_.preemption.save->si;
  if (!cluster_.workloads[job.workload].scenario) return 0;
  return to_seconds(checkpoint_write_time(asked(job).checkpoints)).si;
}

double JobSpeeds::restore_s(const ClusterJob& job) {
  if (cluster_.preemption.restore) return cluster_.preemption.restore->si;
  if (!cluster_.workloads[job.workload].scenario) return 0;
  return to_seconds(checkpoint_read_time(asked(job).checkpoints)).si;
}

double JobSpeeds::alone_s(const ClusterJob& job, std::size_t pool, int gpus) {
  const ScenarioPool& where = cluster_.pools[pool];
  if (gpus > where.pool.nodes * where.pool.gpus_per_node) return kNoTime;
  const ClusterWorkload& workload = cluster_.workloads[job.workload];
  const bool timed = !workload.scenario && workload.model.empty();
  if (timed && gpus != job.gpus) return kNoTime;
  const auto [known, is_new] = tight_.try_emplace({job.workload, pool, gpus}, nullptr);
  if (is_new) known->second = speed(job, pool, tight_shape(where, gpus));
  const JobSpeed* speed = known->second;
  if (speed == nullptr) return kNoTime;
  const double work = work_of(job), efficient = efficiency(job, gpus);
  const double read = speed->reading.step_s > 0 ? std::min(work, speed->reading.images) : 0;
  double alone_s = work / speed->work_per_s;
  if (speed->reading.step_s > speed->step_s)
    alone_s += read / speed->work_per_s * (speed->reading.step_s / speed->step_s - 1);
  alone_s /= efficient;
  if (!speed->writes_checkpoints()) return alone_s;
  const Scenario& scenario = *speed->scenario;
  const Seconds write = to_seconds(checkpoint_write_time(scenario.checkpoints));
  const auto intervals = [&](double images, const StepDistribution* steps, double step_s) {
    const double every = steps ? steps_between_checkpoints(scenario, *steps, Seconds{step_s}, write, 0) : 0;
    return every > 0 ? images / efficient / speed->step_images / every : 0;
  };
  const double written = intervals(read, speed->reading.steps, speed->reading.step_s) +
                         intervals(work - read, speed->steps, speed->step_s);
  return alone_s + (std::ceil(std::max(written, 1.0) - kRounding)) * write.si;  // the last one follows the last step
}

double JobSpeeds::efficiency(const ClusterJob& job, int gpus) {
  const ClusterWorkload& workload = cluster_.workloads[job.workload];
  if (workload.noise_images <= 0 || gpus == job.gpus || !workload.scenario) return 1;
  const Scenario& scenario = asked(job);
  const double asked_images = static_cast<double>(scenario.images_a_step(job.gpus));
  const double images = static_cast<double>(scenario.images_a_step(gpus));
  return (workload.noise_images + asked_images) / (workload.noise_images + images);
}

std::vector<double> steps_of_readers(std::span<const Reader> readers) {
  std::vector<double> steps;
  std::map<std::string, std::vector<std::size_t>> by_store;
  for (std::size_t i = 0; i < readers.size(); ++i) {
    steps.push_back(readers[i].step_s);
    if (readers[i].reading->store_s > 0) by_store[readers[i].reading->store].push_back(i);
  }
  const auto wanted = [&](std::size_t i) { return readers[i].reading->store_s / readers[i].step_s; };
  for (auto& [store, members] : by_store) {
    std::stable_sort(members.begin(), members.end(),
                     [&](std::size_t a, std::size_t b) { return wanted(a) < wanted(b); });
    double left = 1;  // share of the store's rate that nobody has yet
    for (std::size_t k = 0; k < members.size(); ++k) {
      const std::size_t i = members[k];
      const double share = std::min(wanted(i), left / static_cast<double>(members.size() - k));
      left -= share;
      if (share < wanted(i))
        steps[i] = std::max(steps[i], readers[i].reading->latency_s + readers[i].reading->store_s / share);
    }
  }
  return steps;
}

}  // namespace ganymede::sim
