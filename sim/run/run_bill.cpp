#include "sim/run/run_bill.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "platforms/providers.hpp"
#include "sim/run/bill_items.hpp"

namespace ganymede::sim {

double BillDraft::hours() const {
  return std::max(0.0, (to_seconds(stretch.at(record.end)) + scenario.charges.idle_tail).si) / 3600;
}

double BillDraft::months() const { return hours() / kHoursPerMonth; }

void BillDraft::add(BillItem item, const ScenarioPool& from, bool with_market) {
  item.provider = from.platform->provider;
  item.region = from.pool.region;
  if (with_market) item.market = platforms::to_string(from.pool.market);
  out.bill.items.push_back(std::move(item));
}

void BillDraft::warn_no_price(const platforms::Storage& storage, const ScenarioPool& from) {
  if (!platforms::provider_of(from.platform->provider).owned)
    out.warnings.insert(
        fmt::format("no price is known of {} of {}, and none is in the bill", storage.name, from.platform->name));
}

BillingRule billing_rule_of(const ScenarioPool& pool) {
  const platforms::Billing& billing = pool.platform->billing;
  BillingRule rule{billing.granularity, billing.minimum, {}, {}};
  if (pool.pool.market == platforms::Market::spot) rule.free_if_interrupted = billing.free_if_interrupted;
  if (pool.pool.market == platforms::Market::on_demand) rule.sustained_use = pool.instance().sustained_use;
  return rule;
}

double total_usd(const Bill& bill) { return static_cast<double>(bill.total().value) * 1e-6; }

RunBill bill_of(const Scenario& scenario, const RunRecord& record, const RunEnergy& energy, Nanoseconds longer) {
  BillDraft draft{scenario, record, energy, Stretch(record.trained, longer)};
  for (std::size_t p = 0; p < scenario.pools.size(); ++p) add_instance_hours(draft, p);
  add_parameter_servers(draft);
  add_commitments(draft);
  add_boot_disks(draft);
  add_volumes(draft);
  add_storage_requests(draft);
  add_data_transfer(draft);
  add_services(draft);
  add_electricity(draft);
  return std::move(draft.out);
}

}  // namespace ganymede::sim
