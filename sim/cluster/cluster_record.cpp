#include "sim/cluster/cluster_record.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "common/units.hpp"
#include "sim/steps/dataset_cache.hpp"

namespace ganymede::sim {

int FreeNodes::free() const {
  int sum = 0;
  for (const int gpus : free_) sum += gpus;
  return sum;
}

std::vector<GpuSlot> FreeNodes::take(const policies::PlacementRule& rule, int gpus) {
  std::vector<GpuSlot> slots;
  for (const policies::NodeShare& share : rule.place({free_, gpus_per_node_, group_}, gpus)) {
    const auto node = static_cast<std::size_t>(share.node);
    free_[node] -= share.gpus;
    int left = share.gpus;
    for (int gpu = 0; left > 0; ++gpu) {
      if (taken_[node][static_cast<std::size_t>(gpu)]) continue;
      taken_[node][static_cast<std::size_t>(gpu)] = true;
      slots.push_back({share.node, gpu});
      --left;
    }
  }
  return slots;
}

void FreeNodes::give(const std::vector<GpuSlot>& slots) {
  for (const GpuSlot& slot : slots) {
    ++free_[static_cast<std::size_t>(slot.node)];
    taken_[static_cast<std::size_t>(slot.node)][static_cast<std::size_t>(slot.gpu)] = false;
  }
}

std::vector<int> shape_of(const std::vector<GpuSlot>& slots) {
  std::map<int, int> by_node;
  for (const GpuSlot& slot : slots) ++by_node[slot.node];
  std::vector<int> shape;
  for (const auto& [node, gpus] : by_node) shape.push_back(gpus);
  std::sort(shape.begin(), shape.end(), std::greater<>());
  return shape;
}

std::vector<int> members_of(std::vector<GpuSlot> slots, int gpus_per_node) {
  std::map<int, int> of_node;
  for (const GpuSlot& slot : slots) ++of_node[slot.node];
  std::stable_sort(slots.begin(), slots.end(), [&](const GpuSlot& a, const GpuSlot& b) {
    return of_node[a.node] != of_node[b.node] ? of_node[a.node] > of_node[b.node] : a < b;
  });
  std::vector<int> members;
  for (const GpuSlot& slot : slots) members.push_back(slot.node * gpus_per_node + slot.gpu);
  return members;
}

namespace {

MicroUsd pool_total(const Bill& bill, const std::string& pool) {
  MicroUsd sum;
  for (const BillItem& item : bill.items)
    if (item.pool == pool) sum += item.usd;
  return sum;
}

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

double jain_index(const std::vector<double>& values) {
  double sum = 0, squares = 0;
  for (const double value : values) {
    sum += value;
    squares += value * value;
  }
  return squares > 0 ? sum * sum / (static_cast<double>(values.size()) * squares) : 1;
}

ClusterCosts cluster_costs(const Cluster& cluster, const ClusterRecord& record) {
  Scenario whole;
  whole.pools = cluster.pools;
  whole.charges = cluster.charges;
  RunRecord life;
  life.end = to_nanoseconds(Seconds{record.span_s()});
  life.ledgers.resize(cluster.pools.size());
  life.device_s = record.busy_gpu_s;
  Node node;
  node.state = Node::State::ready;
  node.requested = node.granted = node.readied = node.runs = 0;
  for (std::size_t p = 0; p < cluster.pools.size(); ++p) {
    ScenarioPool& pool = whole.pools[p];
    node.pool = p;
    life.nodes.insert(life.nodes.end(), static_cast<std::size_t>(pool.pool.nodes), node);
    for (auto* series : {&pool.carbon, &pool.prices})  // recordings begin with the clock of the cluster's file
      if (*series)
        for (Series::Row& row : (*series)->rows) row.at -= Seconds{record.begin_s};
  }
  const std::vector<PoolAccount> accounts = close_accounts(whole, life);
  std::vector<std::optional<double>> hosts(cluster.pools.size());
  for (const PoolAccount& account : accounts)
    if (const double vcpus = cluster.pools[account.pool].instance().vcpus; vcpus > 0)
      hosts[account.pool] = record.host_s[account.pool] / (to_seconds(account.held).si * vcpus);
  const double end_s = to_seconds(life.end).si;
  ClusterCosts costs;
  costs.energy = energy_of(whole, life, accounts, hosts, {end_s, end_s});
  costs.bill = bill_of(whole, life, costs.energy, record.other);
  return costs;
}

OwnerCosts owner_costs(const Cluster& cluster, const ClusterRecord& record, const Bill& bill) {
  std::vector<double> of_pool;
  const double paid_s = record.span_s() + cluster.charges.idle_tail.si;
  double rest = static_cast<double>(bill.total().value), all_gpu_s = 0;
  for (const ScenarioPool& pool : cluster.pools) {
    of_pool.push_back(static_cast<double>(pool_total(bill, pool.name).value));
    rest -= of_pool.back();
    all_gpu_s += paid_s * pool.pool.nodes * pool.pool.gpus_per_node;
  }
  std::vector<double> usd(cluster.owners.size(), 0);
  for (std::size_t p = 0; p < cluster.pools.size() && all_gpu_s > 0; ++p) {
    const policies::Pool& pool = cluster.pools[p].pool;
    const double per_gpu_s = of_pool[p] / (paid_s * pool.nodes * pool.gpus_per_node) + rest / all_gpu_s;
    for (std::size_t i = 0; i < record.jobs.size(); ++i)
      for (const Stay& stay : record.jobs[i].stays)
        if (stay.pool == p) usd[cluster.jobs[i].owner] += per_gpu_s * (stay.to_s - stay.from_s) * stay.gpus();
  }
  OwnerCosts costs;
  costs.idle = bill.total();
  for (const double amount : usd) {
    costs.owners.push_back({std::min(std::llround(amount), static_cast<long long>(costs.idle.value))});
    costs.idle = costs.idle - costs.owners.back();
  }
  return costs;
}

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
