#include "sim/service/service_result.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "sim/run/run_bill.hpp"
#include "sim/service/service_simulation.hpp"

namespace ganymede::sim {
namespace {

/// The value that a share of the sorted numbers does not exceed; no number if there are none.
double quantile(const std::vector<double>& sorted, double share) {
  if (sorted.empty()) return std::numeric_limits<double>::quiet_NaN();
  const auto rank = static_cast<std::size_t>(std::ceil(share * static_cast<double>(sorted.size())));
  return sorted[std::max<std::size_t>(rank, 1) - 1];
}

std::vector<double> sorted_latencies(const ServiceRecord& record) {
  std::vector<double> sorted = record.latencies_s;
  std::sort(sorted.begin(), sorted.end());
  return sorted;
}

bool has_several(const Service& service) {
  return std::max(service.scenario.pools.front().pool.nodes, service.autoscaling ? service.autoscaling->most : 1) > 1;
}

Bill bill_of(const Service& service, const ServiceRecord& record) {
  const ScenarioPool& pool = service.scenario.pools.front();
  Bill bill{instance_hours(pool.name, pool.price.per_hour, record.rentals, billing_rule_of(pool))};
  const platforms::Platform& platform = *pool.platform;
  const double hours = service.duration.si / 3600;
  if (platform.services.load_balancer && has_several(service))
    bill.items.push_back(
        charge("load-balancer", pool.name, hours, "h", MicroUsd{platform.services.load_balancer->value}));
  const double sent = service.bytes_per_image * static_cast<double>(record.latencies_s.size());
  if (sent > 0 && !platform.transfer.internet.empty()) {
    std::vector<double> quantities(platform.transfer.internet.size());
    fill_tiers(0, sent / platforms::bytes_of(platform.transfer.internet_unit), platform.transfer.internet, quantities);
    for (BillItem& item :
         tiered("egress", pool.name, quantities, platform.transfer.internet_unit, platform.transfer.internet))
      bill.items.push_back(std::move(item));
  }
  for (BillItem& item : bill.items) {
    item.provider = platform.provider, item.region = pool.pool.region;
    item.market = platforms::to_string(pool.pool.market);
  }
  return bill;
}

void add_warnings(const Service& service, documents::ServiceResult& result) {
  const ScenarioPool& pool = service.scenario.pools.front();
  if (pool.spot == Spot::drawn)
    result.warnings.push_back(
        fmt::format("nobody said when spot nodes of {} are taken back: the seed draws a zone as measured elsewhere, "
                    "each replica on its own",
                    pool.instance().name));
  if (pool.platform->provisioning.image_pull.median.si + pool.platform->provisioning.framework_start.median.si +
          service.load.si <=
      0)
    result.warnings.emplace_back(
        "a replica serves as soon as its host runs: neither the platform nor \"load\" says how long the image and the "
        "weights take");
  if (service.overhead.si == 0)
    result.warnings.emplace_back("latency is that of queue and GPU: \"overhead\" adds network and encoding");
  if (!pool.platform->services.load_balancer && has_several(service))
    result.warnings.push_back(
        fmt::format("{} states no price of a load balancer, which several replicas need", pool.platform->name));
  if (service.bytes_per_image > 0 && pool.platform->transfer.internet.empty())
    result.warnings.push_back(fmt::format("{} states no price of data to the internet", pool.platform->name));
  if (result.requests.served == 0 && result.requests.arrived > 0)
    result.warnings.emplace_back(
        "no request was served: were replicas ever ready, and do nodes live longer than their notice?");
  if (result.total.value == 0 && pool.platform->billing.free_if_interrupted.si > 0)
    result.warnings.push_back(
        fmt::format("nothing is charged: {} does not charge spot nodes that it takes back within {}",
                    pool.platform->name, to_string(pool.platform->billing.free_if_interrupted)));
  if (pool.spot == Spot::uninterrupted && pool.pool.market == platforms::Market::spot)
    result.warnings.emplace_back("spot nodes are never taken back, as stated");
}

void check_goals(const Service& service, documents::ServiceResult& result) {
  auto& missed = result.goals.missed;
  if (service.p95 && (result.requests.served == 0 || result.latency.p95 > service.p95->si))
    missed.push_back(
        fmt::format("p95 {} is above {}", to_string(Seconds{result.latency.p95}), to_string(*service.p95)));
  if (service.failed && result.requests.failed > *service.failed)
    missed.push_back(fmt::format("{:.3g} % of requests failed, more than {:.3g} %", 100 * result.requests.failed,
                                 100 * *service.failed));
  result.goals.met = missed.empty();
}

}  // namespace

documents::ServiceResult serve(const Service& service) {
  const ScenarioPool& pool = service.scenario.pools.front();
  const ServiceRecord record = simulate_service(service, service.times.central_s);
  const std::vector<double> latencies = sorted_latencies(record);
  documents::ServiceResult out;
  out.hash = service.scenario.hash, out.seed = service.scenario.seed;
  out.provider = pool.platform->name, out.region = pool.pool.region;
  out.market = platforms::to_string(pool.pool.market);
  out.instance = pool.instance().name, out.gpu = pool.gpu().name;
  out.gpus_per_replica = pool.pool.gpus_per_node, out.largest_batch = service.largest_batch;
  out.duration = service.duration.si;
  out.batch_1_s = service.times.central_s.front(), out.largest_batch_s = service.times.central_s.back();
  out.times = service.times.how;

  const auto served = static_cast<std::int64_t>(latencies.size());
  const std::int64_t failed = record.refused + record.timed_out + record.lost;
  out.requests = {
      record.arrived, served,
      record.refused, record.timed_out,
      record.lost,    record.arrived == 0 ? 0 : static_cast<double>(failed) / static_cast<double>(record.arrived)};
  double sum = 0;
  for (const double latency : latencies) sum += latency;
  out.latency = {sum / static_cast<double>(served), quantile(latencies, 0.5), quantile(latencies, 0.95),
                 quantile(latencies, 0.99),         quantile(latencies, 1),   {}};
  const auto p95_with = [&](const std::vector<double>& times) {
    return times == service.times.central_s ? out.latency.p95
                                            : quantile(sorted_latencies(simulate_service(service, times)), 0.95);
  };
  out.latency.p95_interval = {std::min(out.latency.p95, p95_with(service.times.low_s)),
                              std::max(out.latency.p95, p95_with(service.times.high_s))};
  out.images_per_s = static_cast<double>(served) / service.duration.si;
  out.mean_batch =
      record.batches == 0 ? 0 : static_cast<double>(served + record.lost) / static_cast<double>(record.batches);
  out.utilization = record.ready_s > 0 ? std::min(1.0, record.busy_s / record.ready_s) : 0;
  out.replicas = {record.replica_s / service.duration.si, pool.pool.nodes, record.most_replicas, record.starts,
                  record.reclaims};
  const Bill bill = bill_of(service, record);
  out.bill = bill.items, out.total = bill.total();
  out.usd_per_1000 =
      served == 0 ? std::numeric_limits<double>::infinity() : usd_of(out.total) * 1000 / static_cast<double>(served);
  add_warnings(service, out);
  check_goals(service, out);
  return out;
}

}  // namespace ganymede::sim
