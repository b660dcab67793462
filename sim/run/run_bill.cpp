#include "sim/run/run_bill.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "common/units.hpp"
#include "platforms/providers.hpp"
#include "sim/steps/dataset_cache.hpp"

namespace ganymede::sim {

BillingRule billing_rule_of(const ScenarioPool& pool) {
  const platforms::Billing& billing = pool.platform->billing;
  BillingRule rule{billing.granularity, billing.minimum, {}, {}};
  if (pool.pool.market == platforms::Market::spot) rule.free_if_interrupted = billing.free_if_interrupted;
  if (pool.pool.market == platforms::Market::on_demand) rule.sustained_use = pool.instance().sustained_use;
  return rule;
}

double total_usd(const Bill& bill) { return static_cast<double>(bill.total().value) * 1e-6; }

namespace {

/// A bill under construction, and the inputs from which its items are computed.
struct BillDraft {
  const Scenario& scenario;
  const RunRecord& record;
  const RunEnergy& energy;
  Stretch stretch;  ///< stretches the run to the length that is billed
  RunBill out = {};

  /// Nanoseconds from the request to the end of the stretched run, idle tail included.
  Nanoseconds end() const { return stretch.at(record.end) + to_nanoseconds(scenario.charges.idle_tail); }
  double hours() const {
    return std::max(0.0, (to_seconds(stretch.at(record.end)) + scenario.charges.idle_tail).si) / 3600;
  }
  double months() const { return hours() / kHoursPerMonth; }
  /// The pool whose platform charges for what belongs to no single pool.
  const ScenarioPool& first() const { return scenario.pools.front(); }

  void add(BillItem item, const ScenarioPool& from, bool with_market = false) {
    item.provider = from.platform->provider;
    item.region = from.pool.region;
    if (with_market) item.market = platforms::to_string(from.pool.market);
    out.bill.items.push_back(std::move(item));
  }
  /// Warns that a storage class has no price, unless the machines are the user's own.
  void warn_no_price(const platforms::Storage& storage, const ScenarioPool& from) {
    if (!platforms::provider_of(from.platform->provider).owned)
      out.warnings.insert(
          fmt::format("no price is known of {} of {}, and none is in the bill", storage.name, from.platform->name));
  }
};

// Nodes.

constexpr double kHoursPerYear = 8760;

bool is_reserved(const ScenarioPool& pool) {
  return pool.pool.market == platforms::Market::reserved_1y || pool.pool.market == platforms::Market::reserved_3y;
}

/// The price of a reserved hour on demand; 0 if that is not known or nothing is reserved.
MicroUsd list_price(const ScenarioPool& pool) {
  if (!is_reserved(pool)) return {};
  const platforms::Price* price =
      platforms::find_price(pool.instance(), pool.pool.region, platforms::Market::on_demand, pool.zone);
  return price ? MicroUsd{price->per_hour.value} : MicroUsd{};
}

/// Hours at a recorded price that changes while the nodes are rented.
void add_hours_at_recorded_prices(BillDraft& draft, const ScenarioPool& pool, const std::vector<Rental>& rentals,
                                  const BillingRule& rule) {
  BillItem item{.item = "instance-hours", .pool = pool.name, .quantity = 0, .unit = "h", .unit_price = {}, .usd = {}};
  for (const Rental& rental : rentals) {
    const Nanoseconds until = rental.billed_until(rule);
    item.quantity += to_seconds(until - rental.from).si / 3600;
    item.usd += {std::llround(integral(*pool.prices, to_seconds(rental.from), to_seconds(until)) / 3600 * 1e6)};
  }
  if (item.quantity <= 0) return;
  item.unit_price = {std::llround(static_cast<double>(item.usd.value) / item.quantity)};
  draft.add(std::move(item), pool, true);
}

void add_instance_hours(BillDraft& draft, std::size_t p) {
  const ScenarioPool& pool = draft.scenario.pools[p];
  const std::vector<Rental> rentals = rentals_of(draft.scenario, draft.record, p, draft.stretch);
  const BillingRule rule = billing_rule_of(pool);
  double free_h = 0;
  for (const Rental& rental : rentals)
    if (rental.billed_until(rule) == rental.from) free_h += to_seconds(rental.to - rental.from).si / 3600;
  if (free_h > 0)
    draft.out.warnings.insert(fmt::format(
        "{:.3g} node-hours of \"{}\" are not charged, as the provider took their nodes back early", free_h, pool.name));
  if (pool.prices) return add_hours_at_recorded_prices(draft, pool, rentals, rule);
  for (BillItem& item : instance_hours(pool.name, pool.price.per_hour, rentals, rule)) {
    if (is_reserved(pool)) item.list_price = list_price(pool);
    draft.add(std::move(item), pool, true);
  }
}

void add_parameter_servers(BillDraft& draft, const RentedServers& rented) {
  const ScenarioPool& from = draft.scenario.pools[rented.pool];
  const platforms::Billing& billing = from.platform->billing;
  for (BillItem& item : instance_hours(rented.servers.instance, rented.servers.price.per_hour, rented.rentals,
                                       {billing.granularity, billing.minimum, {}, {}})) {
    item.item = "parameter servers";
    item.market = platforms::to_string(platforms::Market::on_demand);
    draft.add(std::move(item), from);
  }
}

void add_commitments(BillDraft& draft) {
  if (!draft.scenario.charges.whole_term) return;
  for (const ScenarioPool& pool : draft.scenario.pools) {
    if (!is_reserved(pool)) continue;
    double used_h = 0;
    for (const BillItem& item : draft.out.bill.items)
      if (item.pool == pool.name && item.unit == "h") used_h += item.quantity;
    const double term_h =
        (pool.pool.market == platforms::Market::reserved_1y ? 1 : 3) * kHoursPerYear * pool.pool.nodes;
    if (term_h <= used_h) continue;
    BillItem item = charge("unused commitment", pool.name, term_h - used_h, "h", {pool.price.per_hour.value});
    item.list_price = list_price(pool);
    draft.add(std::move(item), pool, true);
  }
}

// Storage: boot disks, volumes for dataset and checkpoints, and requests to object stores.

/// Bytes of one part of an object that is written in parts, with one request for each: the default of the AWS CLI.
constexpr double kPartBytes = 8 * 1048576.0;

/// The time until which the boot disk of node `index` is kept: when the next node of its pool is granted at or after
/// the end of that node, at most the end of the draft.
Nanoseconds replaced_at(const BillDraft& draft, std::size_t index) {
  const std::vector<Node>& nodes = draft.record.nodes;
  Nanoseconds until = draft.end();
  for (std::size_t later = index + 1; later < nodes.size(); ++later)
    if (nodes[later].pool == nodes[index].pool && nodes[later].granted != kNever &&
        nodes[later].granted >= nodes[index].gone)
      until = std::min(until, draft.stretch.at(nodes[later].granted));
  return until;
}

/// Seconds that the boot disks of a pool's nodes exist, summed over the disks.
double boot_disk_seconds(const BillDraft& draft, std::size_t pool) {
  const RunRecord& record = draft.record;
  double seconds = 0;
  for (std::size_t i = 0; i < record.nodes.size(); ++i) {
    const Node& node = record.nodes[i];
    if (node.pool != pool || node.granted == kNever) continue;
    Nanoseconds until = node.gone < record.end ? draft.stretch.at(node.gone) : draft.end();
    if (node.interrupted && draft.scenario.charges.boot_disk_kept) until = replaced_at(draft, i);
    const Nanoseconds ready = std::min({node.readied, node.gone, record.end});
    seconds += to_seconds(std::max<Nanoseconds>(0, until - draft.stretch.start(node.granted, ready))).si;
  }
  return seconds;
}

void add_boot_disks(BillDraft& draft) {
  const Charges& charges = draft.scenario.charges;
  if (!charges.boot_disk) return;
  const platforms::Storage& disk = *charges.boot_disk;
  for (std::size_t p = 0; p < draft.scenario.pools.size(); ++p) {
    const double seconds = boot_disk_seconds(draft, p);
    const ScenarioPool& pool = draft.scenario.pools[p];
    const platforms::StorageRates& rates = disk.rates_in(pool.pool.region);
    if (!rates.per_month) draft.warn_no_price(disk, pool);
    if (seconds > 0 && rates.per_month && rates.per_month->value > 0)
      draft.add(charge("boot disk", fmt::format("{} ({})", disk.name, pool.name),
                       charges.boot_disk_size.si / platforms::bytes_of(rates.unit) * seconds / 3600 / kHoursPerMonth,
                       fmt::format("{}-month", platforms::unit_name(rates.unit)), *rates.per_month),
                pool);
  }
}

void add_volume(BillDraft& draft, const StoredData& data) {
  const ScenarioPool& from = draft.scenario.pools[data.pool];
  const platforms::Storage& storage = data.storage;
  const platforms::StorageRates& rates = storage.rates_in(from.pool.region);
  const std::string name = fmt::format("{} ({})", storage.name, data.what);
  const double bytes = std::max(data.bytes, data.volume.size.si);
  if (bytes <= 0 || data.months <= 0) return;
  if (!rates.per_month) draft.warn_no_price(storage, from);
  if (rates.per_month && rates.per_month->value > 0)
    draft.add(charge("storage", name, bytes / platforms::bytes_of(rates.unit) * data.months,
                     fmt::format("{}-month", platforms::unit_name(rates.unit)), *rates.per_month),
              from);
  if (data.volume.extra_iops > 0)
    draft.add(
        charge("provisioned IOPS", name, data.volume.extra_iops * data.months, "IOPS-month", *rates.per_iops_month),
        from);
  if (data.volume.extra_rate > 0)
    draft.add(charge("provisioned throughput", name, data.volume.extra_rate * data.months,
                     rates.rate_in_mib ? "MiB/s-month" : "MB/s-month", *rates.per_rate_month),
              from);
}

void add_storage_requests(BillDraft& draft, const StoredData& data) {
  const ScenarioPool& from = draft.scenario.pools[data.pool];
  const platforms::StorageRates& rates = data.storage.rates_in(from.pool.region);
  const auto add = [&](const char* item, double count, const auto& price) {
    if (data.storage.object_store && price && count > 0)
      draft.add(
          charge(item, fmt::format("{} ({})", data.storage.name, data.what), count / 1000, "1000 requests", *price),
          from);
  };
  add("read requests", data.reads, rates.per_1000_get);
  add("write requests", data.writes, rates.per_1000_put);
}

// Data transfer, managed services, electricity.

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

/// The traffic that leaves a provider.
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
  const double months = draft.months();
  const auto last = static_cast<std::int64_t>(std::max(1.0, std::ceil(months)));
  for (std::int64_t month = 0; month < last; ++month) {
    double free = draft.scenario.charges.free_tiers ? rates.free_gb_month * 1e9 : 0, before = 0;
    const auto add = [&](double bytes, std::vector<double>& quantities) {
      const double charged = std::max(0.0, bytes - free) / unit;
      free = std::max(0.0, free - bytes);
      fill_tiers(before, charged, rates.internet, quantities);
      before += charged;
    };
    add(egress.to_clouds * (months > 0 ? std::min(1.0, months - static_cast<double>(month)) / months : 1), to_clouds);
    add(month + 1 < last ? 0 : egress.to_internet, to_internet);
  }
  for (BillItem& item : tiered("data transfer", "between clouds", to_clouds, rates.internet_unit, rates.internet))
    draft.add(std::move(item), from);
  for (BillItem& item : tiered("data transfer", "to the internet", to_internet, rates.internet_unit, rates.internet))
    draft.add(std::move(item), from);
}

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

RunBill complete(BillDraft& draft, const OtherUse& other) {
  for (std::size_t p = 0; p < draft.scenario.pools.size(); ++p) add_instance_hours(draft, p);
  for (const RentedServers& rented : other.servers) add_parameter_servers(draft, rented);
  add_commitments(draft);
  add_boot_disks(draft);
  for (const StoredData& data : other.stored) add_volume(draft, data);
  for (const StoredData& data : other.stored) add_storage_requests(draft, data);
  add_data_transfer(draft);
  add_services(draft);
  add_electricity(draft);
  return std::move(draft.out);
}

/// The uses of a run of one training beside its nodes.
OtherUse other_use(const BillDraft& draft) {
  const Scenario& scenario = draft.scenario;
  OtherUse use;
  const auto servers = static_cast<std::size_t>(scenario.servers.nodes);
  if (servers > 0)
    use.servers.push_back({scenario.servers, std::vector<Rental>(servers, {0, std::max<Nanoseconds>(0, draft.end())})});
  // Each node may have a volume of its own: there are as many as nodes were ever held at once, until the run ends.
  const auto months = [&](const platforms::Storage& storage) {
    return draft.months() * (storage.each_node && !storage.object_store ? most_held(draft.record) : 1);
  };
  if (scenario.input.storage)
    use.stored.push_back({*scenario.input.storage, scenario.input.volume, "dataset", dataset_bytes(scenario),
                          months(*scenario.input.storage), std::round(draft.record.totals.reads)});
  const Checkpoints& checkpoints = scenario.checkpoints;
  if (checkpoints.storage)
    use.stored.push_back({*checkpoints.storage, checkpoints.volume, "checkpoint", checkpoints.bytes.si,
                          checkpoints.every == Checkpoints::Every::never ? 0 : months(*checkpoints.storage), 0,
                          write_requests(checkpoints.bytes, static_cast<double>(draft.record.totals.checkpoints))});
  return use;
}

}  // namespace

RunBill bill_of(const Scenario& scenario, const RunRecord& record, const RunEnergy& energy, const OtherUse& other) {
  BillDraft draft{scenario, record, energy, {}};
  return complete(draft, other);
}

RunBill bill_of(const Scenario& scenario, const RunRecord& record, const RunEnergy& energy, Nanoseconds longer) {
  BillDraft draft{scenario, record, energy, Stretch(record.trained, longer)};
  return complete(draft, other_use(draft));
}

double write_requests(Bytes checkpoint, double checkpoints) {
  // A small object is one request. A larger one is created, written in parts and completed, each at a write's price.
  const double parts = std::max(1.0, std::ceil(checkpoint.si / kPartBytes));
  return checkpoints * (parts > 1 ? parts + 2 : 1);
}

}  // namespace ganymede::sim
