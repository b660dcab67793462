// Hours of nodes: nodes that train, parameter servers, and the rest of reserved terms.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "common/units.hpp"
#include "sim/run/bill_items.hpp"

namespace ganymede::sim {
namespace {

constexpr double kHoursPerYear = 8760;

bool is_reserved(const ScenarioPool& pool) {
  return pool.pool.market == platforms::Market::reserved_1y || pool.pool.market == platforms::Market::reserved_3y;
}

/// What a reserved hour would cost on demand; 0 if that is not known or nothing is reserved.
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

}  // namespace

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

}  // namespace ganymede::sim
