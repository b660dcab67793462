#include "sim/cluster/job_stores.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "sim/steps/dataset_cache.hpp"

namespace ganymede::sim {
namespace {

using Nodes = std::set<std::pair<std::size_t, int>>;  // pool and node

/// Months for which something is kept, the idle tail included: a run's rule.
double months_of(double time_s, double tail_s) { return (time_s + tail_s) / 3600 / kHoursPerMonth; }

double copies(const platforms::Storage& storage, const Nodes& nodes) {
  return storage.each_node && !storage.object_store ? static_cast<double>(nodes.size()) : 1;
}

/// A store of datasets.
struct Store {
  StoredData data;
  std::map<std::pair<std::string, double>, std::string> datasets;  // by name and bytes: a workload that reads it
  Nodes nodes;
};

/// The store as it is charged: large enough for all of its datasets.
StoredData charged(Store store, double months) {
  double bytes = 0;
  std::set<std::string> readers;
  for (const auto& [dataset, workload] : store.datasets) {
    bytes += dataset.second;
    readers.insert(workload);
  }
  StoredData out = std::move(store.data);
  out.bytes = out.storage.object_store ? bytes : out.storage.sold(Bytes{std::max(bytes, out.volume.size.si)}).si;
  out.what = fmt::format("dataset of {}", fmt::join(readers, ", "));
  out.reads = std::round(out.reads);
  out.months = months * copies(out.storage, store.nodes);
  return out;
}

void rent_servers(const Cluster& cluster, const ClusterRecord& record, const Stay& stay, const ServerNodes& servers,
                  OtherUse& use) {
  if (servers.nodes == 0) return;
  const Rental rental{to_nanoseconds(Seconds{between_s(record.begin_s, stay.from_s)}),
                      to_nanoseconds(Seconds{between_s(record.begin_s, stay.to_s)} + cluster.charges.idle_tail)};
  const auto same = std::find_if(use.servers.begin(), use.servers.end(), [&](const RentedServers& rented) {
    return rented.pool == stay.pool && rented.servers.instance == servers.instance;
  });
  RentedServers& rented =
      same != use.servers.end() ? *same : use.servers.emplace_back(RentedServers{servers, {}, stay.pool});
  rented.rentals.insert(rented.rentals.end(), static_cast<std::size_t>(servers.nodes), rental);
}

}  // namespace

OtherUse other_use(const Cluster& cluster, const ClusterRecord& record, JobSpeeds& speeds) {
  OtherUse use;
  const double tail_s = cluster.charges.idle_tail.si;
  using Key = std::tuple<std::string, std::string, std::string, double, double>;
  std::map<Key, Store> stores;
  std::map<std::size_t, StoredData> checkpoints;  // by workload
  for (std::size_t i = 0; i < record.jobs.size(); ++i) {
    const JobRecord& job = record.jobs[i];
    const std::string& workload = cluster.workloads[cluster.jobs[i].workload].name;
    std::size_t last_pool = 0;
    const Scenario* trained = nullptr;
    Nodes nodes;
    for (const Stay& stay : job.stays) {
      const JobSpeed* speed = speeds.speed(cluster.jobs[i], stay.pool, shape_of(stay.slots));
      if (speed == nullptr || !speed->scenario) continue;
      trained = speed->scenario.get();
      last_pool = stay.pool;
      for (const GpuSlot& slot : stay.slots) nodes.emplace(stay.pool, slot.node);
      rent_servers(cluster, record, stay, trained->servers, use);
      if (!trained->input.storage) continue;
      const ScenarioPool& pool = cluster.pools[stay.pool];
      const platforms::Storage& storage = *trained->input.storage;
      const auto [known, is_new] = stores.try_emplace(
          Key{pool.catalog, pool.pool.region, storage.name, storage.read.si, storage.iops.value_or(0)});
      Store& store = known->second;
      if (is_new) store.data = {storage, trained->input.volume, "", 0, 0, 0, 0, stay.pool};
      Volume& volume = store.data.volume;
      volume.size = std::max(volume.size, trained->input.volume.size);
      volume.extra_iops = std::max(volume.extra_iops, trained->input.volume.extra_iops);
      volume.extra_rate = std::max(volume.extra_rate, trained->input.volume.extra_rate);
      store.datasets.emplace(std::pair{trained->dataset.name, dataset_bytes(*trained)}, workload);
      for (const GpuSlot& slot : stay.slots) store.nodes.emplace(stay.pool, slot.node);
      store.data.reads += stay.reads;
    }
    if (trained == nullptr || !trained->checkpoints.storage) continue;
    const Checkpoints& kept = trained->checkpoints;
    const auto [known, is_new] = checkpoints.try_emplace(cluster.jobs[i].workload);
    StoredData& data = known->second;
    if (is_new)
      data = {*kept.storage, kept.volume, fmt::format("checkpoints of {}", workload), kept.bytes.si, 0, 0, 0,
              last_pool};
    if (job.checkpoints > 0)
      data.months += months_of(between_s(job.start_s, job.end_s), tail_s) * copies(data.storage, nodes);
    data.writes += write_requests(kept.bytes, static_cast<double>(job.checkpoints));
  }
  for (auto& [key, store] : stores) use.stored.push_back(charged(std::move(store), months_of(record.span_s(), tail_s)));
  for (auto& [workload, data] : checkpoints) use.stored.push_back(std::move(data));
  return use;
}

}  // namespace ganymede::sim
