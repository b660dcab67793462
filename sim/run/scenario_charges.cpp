// "billing" of a scenario: what it is charged for besides the hours of its nodes; and storage of a size.

#include <fmt/format.h>

#include <algorithm>

#include "platforms/providers.hpp"
#include "sim/run/scenario_parts.hpp"

namespace ganymede {

PoolLink::Between between_places(const ScenarioPool& a, const ScenarioPool& b) {
  const bool same = a.catalog == b.catalog ||
                    (a.platform->provider == b.platform->provider && !provider_of(a.platform->provider).owned);
  if (!same) return PoolLink::Between::clouds;
  return a.pool.region == b.pool.region ? PoolLink::Between::zones : PoolLink::Between::regions;
}

std::optional<double> transfer_price(const ScenarioPool& from, const ScenarioPool& to, PoolLink::Between between) {
  const auto dollars = [](const std::optional<MicroUsd>& money) {
    return money ? std::optional<double>(static_cast<double>(money->value) * 1e-6) : std::nullopt;
  };
  const EgressPrices& a = from.platform->transfer;
  const EgressPrices& b = to.platform->transfer;
  switch (between) {
    case PoolLink::Between::zones:
      return a.zone ? std::optional<double>((a.zone_charged_at_both_ends ? 2 : 1) * *dollars(a.zone)) : std::nullopt;
    case PoolLink::Between::regions:
      return dollars(a.region);
    case PoolLink::Between::clouds: {
      // Half of what crosses leaves each end; what a private cloud's own line costs is not in its catalog.
      const bool known = (!a.internet.empty() || provider_of(from.platform->provider).owned) &&
                         (!b.internet.empty() || provider_of(to.platform->provider).owned);
      if (!known || (a.internet.empty() && b.internet.empty())) return std::nullopt;
      double sum = 0;
      for (const EgressPrices* end : {&a, &b})
        if (!end->internet.empty())
          sum += static_cast<double>(end->internet.front().price.value) * 1e-6 *
                 (bytes_of(VolumeUnit::gb) / bytes_of(end->internet_unit));
      return sum / 2;
    }
  }
  return std::nullopt;
}

namespace {

/// IOPS beyond those that come with the volume are there, and are charged. A volume whose IOPS are all provisioned
/// moves so many bytes with each of them, up to what the largest reach.
void provision_iops(const JsonNode& node, const Platform& platform, Storage& storage, Volume& volume) {
  const double wanted = node.as_number(1, 1e9);
  const double included = storage.iops.value_or(0);
  const VolumeLimits& limits = storage.limits;
  if (wanted > included && !storage.rates.per_iops_month)
    node.fail(fmt::format("the catalog {} sells no more than {:g} IOPS of {}", platform.name, included, storage.name));
  if (wanted > included && limits.iops && wanted > *limits.iops)
    node.expected(fmt::format("at most {:g}, which is what {} is sold with", *limits.iops, storage.name));
  const double gib = volume.size.si / bytes_of(VolumeUnit::gib);
  if (wanted > included && limits.iops_per_gib && wanted > *limits.iops_per_gib * gib)
    node.expected(
        fmt::format("at most {:g}: {} is sold with at most {:g} IOPS for each GiB, and this volume has {:g} GiB",
                    std::max(included, *limits.iops_per_gib * gib), storage.name, *limits.iops_per_gib, gib));
  volume.extra_iops = std::max(0.0, wanted - included);
  storage.iops = std::max(wanted, included);
  if (storage.provisioned && limits.per_iops) {
    storage.read = std::min(storage.read, *limits.per_iops * *storage.iops);
    storage.write = std::min(storage.write, *limits.per_iops * *storage.iops);
  }
}

/// Likewise. The IOPS are settled by now.
void provision_throughput(const JsonNode& node, const Platform& platform, Storage& storage, Volume& volume) {
  const auto wanted = node.as_positive<BytesPerSecond>();
  const VolumeLimits& limits = storage.limits;
  const bool more = wanted > storage.read;
  if (more && !storage.rates.per_rate_month)
    node.fail(fmt::format("the catalog {} sells no more than {} of {}", platform.name, to_string(storage.read),
                          storage.name));
  if (more && limits.throughput && wanted > *limits.throughput)
    node.expected(
        fmt::format("at most {}, which is what {} is sold with", to_string(*limits.throughput), storage.name));
  if (const double iops = storage.iops.value_or(0); more && limits.per_iops && wanted > *limits.per_iops * iops)
    node.expected(fmt::format("at most {}: {} is sold with at most {} for each of its IOPS, and this volume has {:g}",
                              to_string(std::max(storage.read, *limits.per_iops * iops)), storage.name,
                              to_string(*limits.per_iops), iops));
  volume.extra_rate = std::max(0.0, (wanted - storage.read).si / (storage.rates.rate_in_mib ? 1048576.0 : 1e6));
  storage.read = std::max(storage.read, wanted);
  storage.write = std::max(storage.write, wanted);
}

/// `node` asks for a volume that is to hold `kept`.
void settle_size(const JsonNode& node, const Kept& kept, std::string_view region, Storage& storage, Volume& volume) {
  if (storage.object_store) return;
  volume.size = storage.sold(std::max(volume.size, kept.bytes));
  if (volume.size.si <= 0 && kept.at_all && storage.size_matters(region))
    node.expected(
        fmt::format("a size, as in {{\"class\": \"{}\", \"size\": \"100GiB\"}}: what is charged for {} and how fast it "
                    "is depend on it, and {}",
                    storage.name, storage.name, kept.unknown));
  if (storage.maximum && volume.size > *storage.maximum)
    node.fail(fmt::format("a volume of {:g} GiB is wanted, and {} is sold up to {:g} GiB",
                          volume.size.si / bytes_of(VolumeUnit::gib), storage.name,
                          storage.maximum->si / bytes_of(VolumeUnit::gib)));
  if (volume.size.si > 0) storage.set_size(volume.size);
}

}  // namespace

Storage read_volume(const JsonNode& node, const ScenarioPool& where, const Kept& kept, Volume& volume) {
  const Platform& platform = *where.platform;
  const auto refuse_empty = [&](const Storage& storage) {
    if (storage.provisioned && !storage.iops)
      node.fail(fmt::format("{} has the IOPS that are provisioned: {{\"class\": \"{}\", \"iops\": 3000}}", storage.name,
                            storage.name));
  };
  if (!node.is_object()) {
    Storage storage = platform.storage_class(node.as_string(), &node);
    refuse_empty(storage);
    settle_size(node, kept, where.pool.region, storage, volume);
    return storage;
  }
  JsonObject in(node);
  const JsonNode name = in.required("class");
  Storage storage = platform.storage_class(name.as_string(), &name);
  if (auto size = in.optional("size")) {
    if (storage.object_store) size->fail(fmt::format("{} has no size: what is kept in it is charged", storage.name));
    volume.size = size->as_positive<Bytes>();
    if (volume.size < kept.bytes)
      size->expected(fmt::format("at least {}, which is what it is to hold", to_string(kept.bytes)));
  }
  settle_size(node, kept, where.pool.region, storage, volume);
  if (auto iops = in.optional("iops")) provision_iops(*iops, platform, storage, volume);
  if (auto rate = in.optional("throughput")) provision_throughput(*rate, platform, storage, volume);
  in.finish();
  refuse_empty(storage);
  return storage;
}

namespace {

void read_boot_disk(const JsonNode& node, const Platform& platform, Charges& charges) {
  JsonObject in(node);
  const JsonNode name = in.required("class");
  charges.boot_disk = platform.storage_class(name.as_string(), &name);
  if (charges.boot_disk->object_store) name.fail(fmt::format("{} is no volume", charges.boot_disk->name));
  const JsonNode size = in.required("size");
  charges.boot_disk_size = charges.boot_disk->sold(size.as_positive<Bytes>());
  if (charges.boot_disk->maximum && charges.boot_disk_size > *charges.boot_disk->maximum)
    size.expected(fmt::format("at most {:g} GiB, up to which {} is sold",
                              charges.boot_disk->maximum->si / bytes_of(VolumeUnit::gib), charges.boot_disk->name));
  if (auto then = in.optional("when_interrupted"))
    charges.boot_disk_kept = then->as_choice({"deleted", "kept"}) == "kept";
  in.finish();
}

}  // namespace

void read_charges(const JsonNode& node, Scenario& scenario) {
  JsonObject in(node);
  const Platform& platform = *scenario.pools.front().platform;
  Charges& charges = scenario.charges;
  const auto flag = [&](const char* key) {
    const auto value = in.optional(key);
    return value && value->as_bool();
  };
  charges.free_tiers = flag("free_tiers");
  charges.kubernetes = flag("kubernetes");
  if (charges.kubernetes && !platform.services.control_plane)
    in.required("kubernetes")
        .fail(fmt::format("no price is known of a managed cluster in the catalog {}", platform.name));
  charges.load_balancer = flag("load_balancer");
  if (charges.load_balancer && !platform.services.load_balancer)
    in.required("load_balancer")
        .fail(fmt::format("no price is known of a load balancer in the catalog {}", platform.name));
  if (auto tail = in.optional("idle_tail")) charges.idle_tail = tail->as_quantity<Seconds>();
  if (auto download = in.optional("download")) {
    charges.download = download->as_quantity<Bytes>();
    if (charges.download.si > 0 && platform.transfer.internet.empty())
      download->fail(fmt::format("no price is known of data to the internet in the catalog {}", platform.name));
  }
  if (auto disk = in.optional("boot_disk")) read_boot_disk(*disk, platform, charges);
  if (auto term = in.optional("commitment")) {
    charges.whole_term = term->as_choice({"amortized", "whole-term"}) == "whole-term";
    bool reserved = false;
    for (const ScenarioPool& pool : scenario.pools)
      reserved = reserved || pool.pool.market == Market::reserved_1y || pool.pool.market == Market::reserved_3y;
    if (charges.whole_term && !reserved) term->fail("nothing is reserved: the market is \"on-demand\" or \"spot\"");
  }
  in.finish();
}

}  // namespace ganymede
