#include "sim/cluster/job_stores.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>
#include <utility>

namespace ganymede::sim {
namespace {

using Nodes = std::set<std::pair<std::size_t, int>>;  // pool and node

constexpr double kSecondsPerMonth = 730 * 3600;

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
StoredData charged(Store store, double life_s) {
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
  out.months = life_s / kSecondsPerMonth * copies(out.storage, store.nodes);
  return out;
}

void rent_servers(const Cluster& cluster, const ClusterRecord& record, const Stay& stay, const ServerNodes& servers,
                  OtherUse& use) {
  if (servers.nodes == 0) return;
  const Rental rental{to_nanoseconds(Seconds{stay.from_s - record.begin_s}),
                      to_nanoseconds(Seconds{stay.to_s - record.begin_s} + cluster.charges.idle_tail)};
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
    const JobStores* kept = nullptr;
    Nodes nodes;
    for (const Stay& stay : job.stays) {
      const JobSpeed* speed = speeds.speed(cluster.jobs[i], stay.pool, shape_of(stay.slots));
      if (speed == nullptr || !speed->stores) continue;
      kept = speed->stores.get();
      for (const GpuSlot& slot : stay.slots) nodes.emplace(stay.pool, slot.node);
      rent_servers(cluster, record, stay, kept->servers, use);
      if (!kept->dataset) continue;
      const ScenarioPool& pool = cluster.pools[stay.pool];
      const platforms::Storage& storage = kept->dataset->storage;
      const auto [known, is_new] = stores.try_emplace(
          Key{pool.catalog, pool.pool.region, storage.name, storage.read.si, storage.iops.value_or(0)});
      Store& store = known->second;
      if (is_new) store.data = *kept->dataset;
      Volume& volume = store.data.volume;
      volume.size = std::max(volume.size, kept->dataset->volume.size);
      volume.extra_iops = std::max(volume.extra_iops, kept->dataset->volume.extra_iops);
      volume.extra_rate = std::max(volume.extra_rate, kept->dataset->volume.extra_rate);
      store.datasets.emplace(std::pair{kept->dataset_name, kept->dataset->bytes}, workload);
      for (const GpuSlot& slot : stay.slots) store.nodes.emplace(stay.pool, slot.node);
      store.data.reads += stay.reads;
    }
    if (kept == nullptr || !kept->checkpoint) continue;
    const auto [known, is_new] = checkpoints.try_emplace(cluster.jobs[i].workload, *kept->checkpoint);
    StoredData& data = known->second;
    data.what = fmt::format("checkpoints of {}", workload);
    if (kept->checkpoints || job.preemptions > 0)
      data.months += (job.end_s - job.start_s + tail_s) / kSecondsPerMonth * copies(data.storage, nodes);
    data.writes += write_requests(kept->checkpoint_bytes, job.preemptions);
  }
  for (auto& [key, store] : stores) use.stored.push_back(charged(std::move(store), record.span_s() + tail_s));
  for (auto& [workload, data] : checkpoints) use.stored.push_back(std::move(data));
  return use;
}

}  // namespace ganymede::sim
