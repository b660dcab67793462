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

Bill cluster_bill(const Cluster& cluster, const ClusterRecord& record) {
  Bill bill;
  for (const ScenarioPool& pool : cluster.pools) {
    const platforms::Billing& billing = pool.platform->billing;
    const BillingRule rule{billing.granularity, billing.minimum, Seconds{0}, pool.instance().sustained_use};
    const std::vector<Rental> rentals(static_cast<std::size_t>(pool.pool.nodes),
                                      Rental{0, static_cast<std::int64_t>(std::ceil(record.span_s() * 1e9)), false});
    for (BillItem& item : instance_hours(pool.name, pool.price.per_hour, rentals, rule)) bill.items.push_back(item);
  }
  return bill;
}

OwnerCosts owner_costs(const Cluster& cluster, const ClusterRecord& record, MicroUsd total) {
  const Bill bill = cluster_bill(cluster, record);
  std::vector<double> usd(cluster.owners.size(), 0);
  for (std::size_t pool = 0; pool < cluster.pools.size(); ++pool) {
    const ScenarioPool& where = cluster.pools[pool];
    const double all_gpu_s = record.span_s() * where.pool.nodes * where.pool.gpus_per_node;
    if (all_gpu_s <= 0) continue;
    const double per_gpu_s = static_cast<double>(pool_total(bill, where.name).value) / all_gpu_s;
    for (std::size_t i = 0; i < record.jobs.size(); ++i)
      for (const Stay& stay : record.jobs[i].stays)
        if (stay.pool == pool)
          usd[cluster.jobs[i].owner] +=
              per_gpu_s * (stay.to_s - stay.from_s) * static_cast<double>(stay.slots.size()) * (stay.packed ? 0.5 : 1);
  }
  OwnerCosts costs;
  costs.idle = total;
  for (const double amount : usd) {
    costs.owners.push_back({std::min(std::llround(amount), static_cast<long long>(costs.idle.value))});
    costs.idle = costs.idle - costs.owners.back();
  }
  return costs;
}

std::optional<Energy> cluster_energy(const Cluster& cluster, const ClusterRecord& record) {
  Energy sum;
  for (std::size_t i = 0; i < cluster.pools.size(); ++i) {
    const ScenarioPool& pool = cluster.pools[i];
    const platforms::Gpu& gpu = pool.gpu();
    const platforms::Region* region = pool.platform->region(pool.pool.region);
    if (!gpu.idle || !gpu.peak || region == nullptr || !region->carbon) return std::nullopt;
    const platforms::Instance& instance = pool.instance();
    const double gpu_s = record.span_s() * pool.pool.nodes * instance.gpus;
    const double busy = gpu_s > 0 ? std::min(1.0, record.busy_gpu_s[i] / gpu_s) : 0;
    const double pue = region->pue.value_or(1);
    const auto add = [&](const DevicePower& power, std::int64_t devices) {
      const Energy energy = device_energy(power, busy, devices, Seconds{record.span_s()}, pue, *region->carbon);
      sum.kwh += energy.kwh;
      sum.kg_co2e += energy.kg_co2e;
    };
    add({*gpu.idle, *gpu.peak}, std::int64_t{pool.pool.nodes} * instance.gpus);
    if (instance.idle) add({*instance.idle, *instance.peak}, pool.pool.nodes);
  }
  return sum;
}

}  // namespace ganymede::sim
