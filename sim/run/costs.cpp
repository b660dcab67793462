#include "sim/run/costs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "common/errors.hpp"
#include "platforms/providers.hpp"

namespace ganymede {
namespace {

constexpr double kHoursOfAMonth = 730;
/// Bytes of a part of an object that is written in parts, each a request: the AWS CLI's default.
constexpr double kPartBytes = 8 * 1048576.0;

double dollars(MicroUsd amount) { return static_cast<double>(amount.value) * 1e-6; }

bool reserved(const ScenarioPool& pool) {
  return pool.pool.market == Market::reserved_1y || pool.pool.market == Market::reserved_3y;
}

/// The most nodes that were held at one time.
int most_held(const Life& life) {
  std::vector<std::pair<Nanoseconds, int>> changes;  // a node that goes makes room for one that comes at the same time
  for (std::size_t i = 0; i < life.fleet().size(); ++i) {
    const Node& node = life.fleet()[i];
    if (node.granted == kNever || node.gone <= node.granted) continue;
    changes.emplace_back(node.granted, 1);
    changes.emplace_back(node.gone, -1);
  }
  std::sort(changes.begin(), changes.end());
  int held = 0, most = 0;
  for (const auto& [when, change] : changes) most = std::max(most, held += change);
  return most;
}

/// The parts of a bill that depend on when the run ends.
class BillOfRun {
 public:
  BillOfRun(const Result& result, const Scenario& scenario, Life& life, Nanoseconds shift)
      : result_(result), scenario_(scenario), life_(life), stretch_(life.trained(), shift) {}

  Bill make() {
    for (std::size_t p = 0; p < scenario_.pools.size(); ++p) instances(p);
    parameter_servers();
    commitments();
    boot_disks();
    volumes();
    requests();
    transfer();
    services();
    electricity();
    return std::move(bill_);
  }

  /// What the bill lacks.
  const std::set<std::string>& warnings() const { return warnings_; }

 private:
  void instances(std::size_t p);
  void series_hours(const ScenarioPool& pool, const std::vector<Rental>& rentals, const BillingRule& rule);
  void parameter_servers();
  void commitments();
  void boot_disks();
  void volumes();
  void volume(const Storage& storage, const Volume& volume, const char* what, double bytes);
  void requests();
  void transfer();
  void services();
  void electricity();

  void add(BillItem item, const ScenarioPool& of, bool market = false) {
    item.provider = of.platform->provider;
    item.region = of.pool.region;
    if (market) item.market = to_string(of.pool.market);
    bill_.items.push_back(std::move(item));
  }
  /// Where it is rented from somebody.
  void no_price(const Storage& storage, const ScenarioPool& of) {
    if (!provider_of(of.platform->provider).owned)
      warnings_.insert(
          fmt::format("no price is known of {} of {}, and none is in the bill", storage.name, of.platform->name));
  }
  const ScenarioPool& first() const { return scenario_.pools.front(); }
  double hours() const {
    return std::max(0.0, (to_seconds(stretch_.at(life_.end())) + scenario_.charges.idle_tail).si) / 3600;
  }
  double months() const { return hours() / kHoursOfAMonth; }

  const Result& result_;
  const Scenario& scenario_;
  Life& life_;
  Stretch stretch_;
  Bill bill_;
  std::set<std::string> warnings_;
};

BillingRule rule_of(const ScenarioPool& pool) {
  const Billing& billing = pool.platform->billing;
  BillingRule rule{billing.granularity, billing.minimum, {}, {}};
  if (pool.pool.market == Market::spot) rule.free_if_interrupted = billing.free_if_interrupted;
  if (pool.pool.market == Market::on_demand) rule.sustained_use = pool.instance().sustained_use;
  return rule;
}

std::vector<Rental> rentals_of(const Scenario& scenario, const Life& life, std::size_t p, const Stretch& stretch) {
  return life.fleet().rentals(p, life.end(), stretch, to_nanoseconds(scenario.charges.idle_tail));
}

/// What a reserved hour would cost on demand; 0: not known, or nothing is reserved.
MicroUsd list_price(const ScenarioPool& pool) {
  if (!reserved(pool)) return {};
  const Price* price = find_price(pool.instance(), pool.pool.region, Market::on_demand, pool.zone);
  return price ? MicroUsd{price->per_hour.value} : MicroUsd{};
}

void BillOfRun::instances(std::size_t p) {
  const ScenarioPool& pool = scenario_.pools[p];
  const std::vector<Rental> rentals = rentals_of(scenario_, life_, p, stretch_);
  const BillingRule rule = rule_of(pool);
  double free_h = 0;
  for (const Rental& rental : rentals)
    if (rental.billed_until(rule) == rental.from) free_h += to_seconds(rental.to - rental.from).si / 3600;
  if (free_h > 0)
    warnings_.insert(fmt::format(
        "{:.3g} node-hours of \"{}\" are not charged, as the provider took their nodes back early", free_h, pool.name));
  if (pool.prices) return series_hours(pool, rentals, rule);
  for (BillItem& item : instance_hours(pool.name, pool.price.per_hour, rentals, rule)) {
    if (reserved(pool)) item.list_price = list_price(pool);
    add(std::move(item), pool, true);
  }
}

/// At prices that change while they are rented.
void BillOfRun::series_hours(const ScenarioPool& pool, const std::vector<Rental>& rentals, const BillingRule& rule) {
  BillItem item{.item = "instance-hours", .pool = pool.name, .quantity = 0, .unit = "h", .unit_price = {}, .usd = {}};
  for (const Rental& rental : rentals) {
    const Nanoseconds until = rental.billed_until(rule);
    item.quantity += to_seconds(until - rental.from).si / 3600;
    item.usd += {std::llround(integral(*pool.prices, to_seconds(rental.from), to_seconds(until)) / 3600 * 1e6)};
  }
  if (item.quantity <= 0) return;
  item.unit_price = {std::llround(static_cast<double>(item.usd.value) / item.quantity)};
  add(std::move(item), pool, true);
}

/// Machines of their own for the weights of asynchronous training.
void BillOfRun::parameter_servers() {
  const ServerNodes& servers = scenario_.servers;
  const Billing& billing = first().platform->billing;
  const Nanoseconds end = stretch_.at(life_.end()) + to_nanoseconds(scenario_.charges.idle_tail);
  const std::vector<Rental> rentals(static_cast<std::size_t>(servers.nodes), Rental{0, std::max<Nanoseconds>(0, end)});
  for (BillItem& item : instance_hours(servers.instance, servers.price.per_hour, rentals,
                                       {billing.granularity, billing.minimum, {}, {}})) {
    item.item = "parameter servers";
    item.market = to_string(Market::on_demand);
    add(std::move(item), first());
  }
}

/// Of reserved nodes, the rest of the term that was bought.
void BillOfRun::commitments() {
  if (!scenario_.charges.whole_term) return;
  for (const ScenarioPool& pool : scenario_.pools) {
    if (!reserved(pool)) continue;
    double used = 0;
    for (const BillItem& item : bill_.items)
      if (item.pool == pool.name && item.unit == "h") used += item.quantity;
    const double term = (pool.pool.market == Market::reserved_1y ? 1 : 3) * 8760.0 * pool.pool.nodes;
    if (term <= used) continue;
    BillItem item = charge("unused commitment", pool.name, term - used, "h", {pool.price.per_hour.value});
    item.list_price = list_price(pool);
    add(std::move(item), pool, true);
  }
}

void BillOfRun::boot_disks() {
  if (!scenario_.charges.boot_disk) return;
  const Storage& disk = *scenario_.charges.boot_disk;
  const Nanoseconds end = stretch_.at(life_.end()) + to_nanoseconds(scenario_.charges.idle_tail);
  const Fleet& fleet = life_.fleet();
  for (std::size_t p = 0; p < scenario_.pools.size(); ++p) {
    double seconds = 0;
    for (std::size_t i = 0; i < fleet.size(); ++i) {
      const Node& node = fleet[i];
      if (node.pool != p || node.granted == kNever) continue;
      Nanoseconds until = node.gone < life_.end() ? stretch_.at(node.gone) : end;
      if (node.interrupted && scenario_.charges.boot_disk_kept) {
        until = end;  // unless another takes its place
        for (std::size_t j = i + 1; j < fleet.size(); ++j)
          if (fleet[j].pool == p && fleet[j].granted != kNever && fleet[j].granted >= node.gone)
            until = std::min(until, stretch_.at(fleet[j].granted));
      }
      const Nanoseconds ready = std::min({node.readied, node.gone, life_.end()});
      seconds += to_seconds(std::max<Nanoseconds>(0, until - stretch_.start(node.granted, ready))).si;
    }
    const ScenarioPool& pool = scenario_.pools[p];
    const StorageRates& rates = disk.rates_in(pool.pool.region);
    if (!rates.per_month) no_price(disk, pool);
    if (seconds > 0 && rates.per_month && rates.per_month->value > 0)
      add(charge("boot disk", fmt::format("{} ({})", disk.name, pool.name),
                 scenario_.charges.boot_disk_size.si / bytes_of(rates.unit) * seconds / 3600 / kHoursOfAMonth,
                 fmt::format("{}-month", unit_name(rates.unit)), *rates.per_month),
          pool);
  }
}

void BillOfRun::volume(const Storage& storage, const Volume& volume, const char* what, double bytes) {
  const StorageRates& rates = storage.rates_in(first().pool.region);
  const std::string name = fmt::format("{} ({})", storage.name, what);
  bytes = std::max(bytes, volume.size.si);
  if (bytes <= 0) return;
  // A volume of its own for each node: as many as were ever held at once, which stay until the run ends.
  const double volumes = storage.each_node && !storage.object_store ? most_held(life_) : 1;
  const double volume_months = volumes * months();
  if (!rates.per_month) no_price(storage, first());
  if (rates.per_month && rates.per_month->value > 0)
    add(charge("storage", name, bytes / bytes_of(rates.unit) * volume_months,
               fmt::format("{}-month", unit_name(rates.unit)), *rates.per_month),
        first());
  if (volume.extra_iops > 0)
    add(charge("provisioned IOPS", name, volume.extra_iops * volume_months, "IOPS-month", *rates.per_iops_month),
        first());
  if (volume.extra_rate > 0)
    add(charge("provisioned throughput", name, volume.extra_rate * volume_months,
               rates.rate_in_mib ? "MiB/s-month" : "MB/s-month", *rates.per_rate_month),
        first());
}

void BillOfRun::volumes() {
  const double dataset =
      static_cast<double>(scenario_.dataset.images) * scenario_.dataset.bytes_per_image * scenario_.input.compressed;
  if (scenario_.input.storage) volume(*scenario_.input.storage, scenario_.input.volume, "dataset", dataset);
  if (scenario_.checkpoints.storage && scenario_.checkpoints.every != Checkpoints::Every::never)
    volume(*scenario_.checkpoints.storage, scenario_.checkpoints.volume, "checkpoint", scenario_.checkpoints.bytes.si);
}

void BillOfRun::requests() {
  const StepTotals& totals = life_.training().totals();
  const auto charged = [&](const Storage& storage, const char* what, double count, bool put) {
    const StorageRates& rates = storage.rates_in(first().pool.region);
    const auto& price = put ? rates.per_1000_put : rates.per_1000_get;
    if (storage.object_store && price && count > 0)
      add(charge(put ? "write requests" : "read requests", fmt::format("{} ({})", storage.name, what), count / 1000,
                 "1000 requests", *price),
          first());
  };
  if (scenario_.input.storage) charged(*scenario_.input.storage, "dataset", std::round(totals.reads), false);
  if (scenario_.checkpoints.storage) {
    // A small object is one request. A larger one is created, written in parts and completed, each at a write's price.
    const double parts = std::max(1.0, std::ceil(scenario_.checkpoints.bytes.si / kPartBytes));
    charged(*scenario_.checkpoints.storage, "checkpoint",
            static_cast<double>(totals.checkpoints) * (parts > 1 ? parts + 2 : 1), true);
  }
}

void BillOfRun::transfer() {
  const StepTotals& totals = life_.training().totals();
  // Of the links that join the places where nodes were: on their ring each carries the same.
  double sum = 0, most = 0;
  int links = 0;
  bool zones = true;
  for (const PoolLink& link : scenario_.links) {
    most = std::max(most, link.usd_per_gb);
    if (life_.fleet().held(link.a, life_.end()) == 0 || life_.fleet().held(link.b, life_.end()) == 0) continue;
    sum += link.usd_per_gb;
    zones = zones && link.between == PoolLink::Between::zones;
    ++links;
  }
  const double price = links > 0 ? sum / links : most;
  const double usd = life_.moved_usd() + totals.between_bytes / 1e9 * price;
  if (usd > 0 && price > 0)
    add(charge("data transfer", links > 0 && zones ? "between zones" : "between regions", usd / price, "GB",
               {std::llround(price * 1e6)}),
        first());
  if (scenario_.charges.download.si > 0) {
    const EgressPrices& rates = first().platform->transfer;
    const double free = scenario_.charges.free_tiers ? rates.free_gb_month * 1e9 : 0;
    const double bytes = std::max(0.0, scenario_.charges.download.si - free);
    for (BillItem& item : tiered("data transfer", "to the internet", bytes, rates.internet_unit, rates.internet))
      add(std::move(item), first());
  }
}

void BillOfRun::services() {
  const Services& services = first().platform->services;
  if (scenario_.charges.kubernetes) {
    const double free = scenario_.charges.free_tiers ? services.control_plane_free.si / 3600 * std::ceil(months()) : 0;
    if (hours() > free)
      add(charge("control plane", "managed Kubernetes", hours() - free, "h", {services.control_plane->value}), first());
  }
  if (scenario_.charges.load_balancer)
    add(charge("load balancer", "managed Kubernetes", hours(), "h", {services.load_balancer->value}), first());
}

/// Where it is not in the price of the nodes.
void BillOfRun::electricity() {
  for (std::size_t p = 0; p < scenario_.pools.size(); ++p) {
    const ScenarioPool& pool = scenario_.pools[p];
    const Region* region = pool.platform->region(pool.pool.region);
    if (!region || !region->per_kwh) continue;
    for (const PoolUse& use : result_.pools)
      if (use.pool == pool.name && use.kwh)
        add(charge("electricity", pool.name, *use.kwh * held_longer(scenario_, life_, p, stretch_), "kWh",
                   *region->per_kwh),
            pool);
  }
}

/// Splits what the nodes of a pool cost by what they did meanwhile; the parts sum to `amount` exactly.
void split(CostByUse& uses, const PoolUse& pool, MicroUsd amount, const std::vector<Rental>& rentals,
           const BillingRule& rule, double tail_ns, int gpus) {
  double metered = 0, billed = 0, held = 0;
  for (const Rental& rental : rentals) {
    const Nanoseconds until = rental.billed_until(rule);
    held += static_cast<double>(rental.to - rental.from);
    if (until == rental.from) continue;
    metered += static_cast<double>(rental.to - rental.from);
    billed += static_cast<double>(until - rental.from);
  }
  if (billed <= 0) return;
  const auto part = [&](double nanoseconds) {
    return MicroUsd{std::llround(static_cast<double>(amount.value) * (nanoseconds / billed))};
  };
  tail_ns = std::min(tail_ns, metered);
  const MicroUsd rounding = part(billed - metered), tail = part(tail_ns);
  uses.minimum_and_rounding += rounding;
  uses.idle_tail += tail;
  // What the meter saw and the GPUs' account did not, or the other way round, is time before the nodes were ready.
  // Nodes that were not charged are taken to have done what the others did.
  const GpuSeconds& account = pool.gpu_seconds;
  std::array<double, kGpuUseNames.size()> weights{};
  for (std::size_t use = 0; use < weights.size(); ++use)
    weights[use] = account.seconds(static_cast<GpuUse>(use)) * 1e9 / gpus;
  auto& idle = weights[static_cast<std::size_t>(GpuUse::idle)];
  idle = std::max(0.0, idle - tail_ns);
  auto& provisioning = weights[static_cast<std::size_t>(GpuUse::provisioning)];
  provisioning = std::max(0.0, provisioning + held - account.total_seconds() * 1e9 / gpus);
  double sum = 0;
  for (const double weight : weights) sum += weight;
  MicroUsd left = amount - rounding - tail;
  const MicroUsd whole = left;
  const auto largest = static_cast<std::size_t>(std::max_element(weights.begin(), weights.end()) - weights.begin());
  for (std::size_t use = 0; use < weights.size(); ++use) {
    if (use == largest || sum <= 0) continue;
    const MicroUsd share{std::llround(static_cast<double>(whole.value) * (weights[use] / sum))};
    uses.by_gpu_use[use] += share;
    left = left - share;
  }
  uses.by_gpu_use[largest] += left;
}

}  // namespace

Nanoseconds held_with_tail(const Scenario& scenario, const Fleet& fleet, std::size_t pool, Nanoseconds end,
                           const Stretch& stretch) {
  return fleet.held(pool, end, stretch) + to_nanoseconds(scenario.charges.idle_tail) * fleet.held_at_end(pool, end);
}

double held_longer(const Scenario& scenario, const Life& life, std::size_t pool, const Stretch& stretch) {
  const Nanoseconds held = held_with_tail(scenario, life.fleet(), pool, life.end());
  if (held == 0) return 1;
  return static_cast<double>(held_with_tail(scenario, life.fleet(), pool, life.end(), stretch)) /
         static_cast<double>(held);
}

void add_costs(Result& result, const Scenario& scenario, Life& life) {
  const double end = to_seconds(life.end()).si;
  const auto bill_at = [&](double total_s) {
    BillOfRun run(result, scenario, life, static_cast<Nanoseconds>(std::llround((total_s - end) * 1e9)));
    Bill bill = run.make();
    if (total_s == end) result.warnings.insert(result.warnings.end(), run.warnings().begin(), run.warnings().end());
    return bill;
  };
  result.bill = bill_at(end);
  // At recorded prices a run that is longer may meet better ones.
  const auto [low, high] = std::minmax({dollars(bill_at(result.interval_s.low).total()), dollars(result.bill.total()),
                                        dollars(bill_at(result.interval_s.high).total())});
  result.cost_usd = {low, high};
  for (PoolUse& use : result.pools) {
    for (std::size_t p = 0; p < scenario.pools.size(); ++p) {
      const ScenarioPool& pool = scenario.pools[p];
      if (pool.name != use.pool) continue;
      for (const BillItem& item : result.bill.items)
        if (item.pool == use.pool && item.item.starts_with("instance-hours")) use.usd += item.usd;
      const double tail =
          static_cast<double>(to_nanoseconds(scenario.charges.idle_tail)) * life.fleet().held_at_end(p, life.end());
      split(result.cost_by_use, use, use.usd, rentals_of(scenario, life, p, Stretch()), rule_of(pool), tail,
            pool.instance().gpus);
    }
  }
}

}  // namespace ganymede
