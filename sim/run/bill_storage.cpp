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

void add_volume(BillDraft& draft, const platforms::Storage& storage, const Volume& volume, const char* what,
                double bytes) {
  const platforms::StorageRates& rates = storage.rates_in(draft.first().pool.region);
  const std::string name = fmt::format("{} ({})", storage.name, what);
  bytes = std::max(bytes, volume.size.si);
  if (bytes <= 0) return;
  // Each node may have a volume of its own: there are as many as nodes were ever held at once, until the run ends.
  const double volumes = storage.each_node && !storage.object_store ? most_held(draft.record) : 1;
  const double volume_months = volumes * draft.months();
  if (!rates.per_month) draft.warn_no_price(storage, draft.first());
  if (rates.per_month && rates.per_month->value > 0)
    draft.add(charge("storage", name, bytes / platforms::bytes_of(rates.unit) * volume_months,
                     fmt::format("{}-month", platforms::unit_name(rates.unit)), *rates.per_month),
              draft.first());
  if (volume.extra_iops > 0)
    draft.add(charge("provisioned IOPS", name, volume.extra_iops * volume_months, "IOPS-month", *rates.per_iops_month),
              draft.first());
  if (volume.extra_rate > 0)
    draft.add(charge("provisioned throughput", name, volume.extra_rate * volume_months,
                     rates.rate_in_mib ? "MiB/s-month" : "MB/s-month", *rates.per_rate_month),
              draft.first());
}

enum class RequestKind { read, write };

void add_requests(BillDraft& draft, const platforms::Storage& storage, const char* what, double count,
                  RequestKind kind) {
  const platforms::StorageRates& rates = storage.rates_in(draft.first().pool.region);
  const bool write = kind == RequestKind::write;
  const auto& price = write ? rates.per_1000_put : rates.per_1000_get;
  if (storage.object_store && price && count > 0)
    draft.add(charge(write ? "write requests" : "read requests", fmt::format("{} ({})", storage.name, what),
                     count / 1000, "1000 requests", *price),
              draft.first());
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

void add_volumes(BillDraft& draft) {
  const Scenario& scenario = draft.scenario;
  const double dataset =
      static_cast<double>(scenario.dataset.images) * scenario.dataset.bytes_per_image * scenario.input.compressed;
  if (scenario.input.storage) add_volume(draft, *scenario.input.storage, scenario.input.volume, "dataset", dataset);
  const Checkpoints& checkpoints = scenario.checkpoints;
  if (checkpoints.storage && checkpoints.every != Checkpoints::Every::never)
    add_volume(draft, *checkpoints.storage, checkpoints.volume, "checkpoint", checkpoints.bytes.si);
}

void add_storage_requests(BillDraft& draft) {
  const Scenario& scenario = draft.scenario;
  const StepTotals& totals = draft.record.totals;
  if (scenario.input.storage)
    add_requests(draft, *scenario.input.storage, "dataset", std::round(totals.reads), RequestKind::read);
  if (!scenario.checkpoints.storage) return;
  // A small object is one request. A larger one is created, written in parts and completed, each at a write's price.
  const double parts = std::max(1.0, std::ceil(scenario.checkpoints.bytes.si / kPartBytes));
  add_requests(draft, *scenario.checkpoints.storage, "checkpoint",
               static_cast<double>(totals.checkpoints) * (parts > 1 ? parts + 2 : 1), RequestKind::write);
}

}  // namespace ganymede::sim
