// Storage that a run rents: boot disks, volumes for dataset and checkpoints, and requests to object stores.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/run/bill_items.hpp"

namespace ganymede::sim {
namespace {

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

}  // namespace

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

double write_requests(Bytes checkpoint, double checkpoints) {
  // A small object is one request. A larger one is created, written in parts and completed, each at a write's price.
  const double parts = std::max(1.0, std::ceil(checkpoint.si / kPartBytes));
  return checkpoints * (parts > 1 ? parts + 2 : 1);
}

}  // namespace ganymede::sim
