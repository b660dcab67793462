// What a run is charged for in addition to nodes and storage: data transfer, managed services, electricity.

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "platforms/providers.hpp"
#include "sim/run/bill_items.hpp"

namespace ganymede::sim {
namespace {

struct TransferPrice {
  PoolLink::Between between;
  double usd_per_gb;
  bool by_tiers;
};

TransferPrice price_between(const Scenario& scenario, std::size_t from, std::size_t to) {
  for (const PoolLink& link : scenario.links)
    if ((link.a == from && link.b == to) || (link.a == to && link.b == from))
      return {link.between, link.usd_per_gb, link.by_tiers};
  // A policy's links all begin at the first region, so that between two others the catalog is asked.
  const ScenarioPool &a = scenario.pools[from], &b = scenario.pools[to];
  const PoolLink::Between between = between_places(a, b);
  const std::optional<double> price = transfer_price(a, b, between);
  return {between, price.value_or(0), price && between == PoolLink::Between::clouds};
}

/// The customer whose traffic to the internet is summed up in a month: one for each provider, and one for each catalog
/// of owned machines.
std::string account_of(const ScenarioPool& pool) {
  const std::string& provider = pool.platform->provider;
  return platforms::provider_of(provider).owned ? pool.catalog : provider;
}

/// What leaves a provider.
struct Egress {
  std::size_t from = 0;  ///< the first pool that sends something
  double to_clouds = 0, to_internet = 0;
};

/// Adds what leaves a provider, by the tiers of each month of the run: to other clouds evenly over the run's time, to
/// the internet at its end.
void add_egress(BillDraft& draft, const Egress& egress) {
  const ScenarioPool& from = draft.scenario.pools[egress.from];
  const platforms::EgressPrices& rates = from.platform->transfer;
  const double unit = platforms::bytes_of(rates.internet_unit);
  std::vector<double> to_clouds, to_internet;
  const double months = draft.months(), last = std::max(1.0, std::ceil(months));
  for (double month = 0; month < last; ++month) {
    double free = draft.scenario.charges.free_tiers ? rates.free_gb_month * 1e9 : 0, before = 0;
    const auto add = [&](double bytes, std::vector<double>& quantities) {
      const double charged = std::max(0.0, bytes - free) / unit;
      free = std::max(0.0, free - bytes);
      fill_tiers(before, charged, rates.internet, quantities);
      before += charged;
    };
    add(egress.to_clouds * (months > 0 ? std::min(1.0, months - month) / months : 1), to_clouds);
    add(month + 1 < last ? 0 : egress.to_internet, to_internet);
  }
  for (BillItem& item : tiered("data transfer", "between clouds", to_clouds, rates.internet_unit, rates.internet))
    draft.add(std::move(item), from);
  for (BillItem& item : tiered("data transfer", "to the internet", to_internet, rates.internet_unit, rates.internet))
    draft.add(std::move(item), from);
}

}  // namespace

void add_data_transfer(BillDraft& draft) {
  const Scenario& scenario = draft.scenario;
  BytesBetween sent = draft.record.totals.between;
  for (const auto& [ends, bytes] : draft.record.moved) sent[ends] += bytes;
  std::map<std::string, Egress> egress;
  // By kind, price, and the place that sends: a provider's invoice names the region.
  std::map<std::tuple<PoolLink::Between, double, std::string, std::string>, std::pair<std::size_t, double>> lines;
  for (const auto& [ends, bytes] : sent) {
    const TransferPrice price = price_between(scenario, ends.first, ends.second);
    const ScenarioPool& from = scenario.pools[ends.first];
    if (price.by_tiers) {
      Egress& all = egress.try_emplace(account_of(from), Egress{ends.first}).first->second;
      all.to_clouds += bytes;
    } else if (price.usd_per_gb > 0) {
      const auto key = std::tuple{price.between, price.usd_per_gb, account_of(from), from.pool.region};
      lines.try_emplace(key, ends.first, 0.0).first->second.second += bytes;
    }
  }
  for (const auto& [key, line] : lines) {
    const auto between = std::get<0>(key);
    const char* where = between == PoolLink::Between::zones     ? "between zones"
                        : between == PoolLink::Between::regions ? "between regions"
                                                                : "between clouds";
    draft.add(charge("data transfer", where, line.second / 1e9, "GB", {std::llround(std::get<1>(key) * 1e6)}),
              scenario.pools[line.first]);
  }
  if (scenario.charges.download.si > 0)
    egress.try_emplace(account_of(draft.first()), Egress{}).first->second.to_internet = scenario.charges.download.si;
  for (const auto& [account, all] : egress) add_egress(draft, all);
}

void add_services(BillDraft& draft) {
  const Charges& charges = draft.scenario.charges;
  const platforms::Services& services = draft.first().platform->services;
  if (charges.kubernetes) {
    // Hours that a month does not use are not carried over to the next.
    const double free_of_month = charges.free_tiers ? services.control_plane_free.si / 3600 : 0;
    const double whole_months = std::floor(draft.hours() / kHoursPerMonth);
    const double free_h = whole_months * std::min(free_of_month, kHoursPerMonth) +
                          std::min(free_of_month, draft.hours() - whole_months * kHoursPerMonth);
    if (draft.hours() > free_h)
      draft.add(
          charge("control plane", "managed Kubernetes", draft.hours() - free_h, "h", {services.control_plane->value}),
          draft.first());
  }
  if (charges.load_balancer)
    draft.add(charge("load balancer", "managed Kubernetes", draft.hours(), "h", {services.load_balancer->value}),
              draft.first());
}

void add_electricity(BillDraft& draft) {
  for (std::size_t p = 0; p < draft.scenario.pools.size(); ++p) {
    const ScenarioPool& pool = draft.scenario.pools[p];
    const platforms::Region* region = pool.platform->region(pool.pool.region);
    const std::optional<Energy>& used = draft.energy.pools[p];
    if (!region || !region->per_kwh || !used) continue;
    const double kwh = used->kwh * held_ratio(draft.scenario, draft.record, p, draft.stretch);
    draft.add(charge("electricity", pool.name, kwh, "kWh", *region->per_kwh), pool);
  }
}

}  // namespace ganymede::sim
