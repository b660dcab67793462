// What a run is charged for in addition to nodes and storage: data transfer, managed services, electricity.

#include <algorithm>
#include <cmath>

#include "sim/run/bill_items.hpp"

namespace ganymede::sim {
namespace {

/// Adds the transfer between places of the run: its cost, and as quantity the GB that this cost pays for at the mean
/// price of the links crossed.
void add_transfer_between_pools(BillDraft& draft) {
  // Every link on the ring that joins the places with nodes carries the same bytes.
  double sum = 0, most = 0;
  int links = 0;
  bool zones = true;
  for (const PoolLink& link : draft.scenario.links) {
    most = std::max(most, link.usd_per_gb);
    if (held_time(draft.record, link.a) == 0 || held_time(draft.record, link.b) == 0) continue;
    sum += link.usd_per_gb;
    zones = zones && link.between == PoolLink::Between::zones;
    ++links;
  }
  const double price = links > 0 ? sum / links : most;
  const double usd = draft.record.moved_usd + draft.record.totals.between_bytes / 1e9 * price;
  if (usd > 0 && price > 0)
    draft.add(charge("data transfer", links > 0 && zones ? "between zones" : "between regions", usd / price, "GB",
                     {std::llround(price * 1e6)}),
              draft.first());
}

}  // namespace

void add_data_transfer(BillDraft& draft) {
  add_transfer_between_pools(draft);
  const Charges& charges = draft.scenario.charges;
  if (charges.download.si <= 0) return;
  const platforms::EgressPrices& rates = draft.first().platform->transfer;
  const double free_bytes = charges.free_tiers ? rates.free_gb_month * 1e9 : 0;
  const double bytes = std::max(0.0, charges.download.si - free_bytes);
  for (BillItem& item : tiered("data transfer", "to the internet", bytes, rates.internet_unit, rates.internet))
    draft.add(std::move(item), draft.first());
}

void add_services(BillDraft& draft) {
  const Charges& charges = draft.scenario.charges;
  const platforms::Services& services = draft.first().platform->services;
  if (charges.kubernetes) {
    const double free_h = charges.free_tiers ? services.control_plane_free.si / 3600 * std::ceil(draft.months()) : 0;
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
