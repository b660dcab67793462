#include "sim/cluster/cluster_record.hpp"

#include <algorithm>
#include <cmath>

#include "common/units.hpp"

namespace ganymede::sim {
namespace {

MicroUsd pool_total(const Bill& bill, const std::string& pool) {
  MicroUsd sum;
  for (const BillItem& item : bill.items)
    if (item.pool == pool) sum += item.usd;
  return sum;
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

}  // namespace ganymede::sim
