#include "sim/run/run_bill.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "platforms/providers.hpp"
#include "sim/run/bill_items.hpp"
#include "sim/steps/dataset_cache.hpp"

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

namespace {

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

/// What a run of one training uses beside its nodes.
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

}  // namespace ganymede::sim
