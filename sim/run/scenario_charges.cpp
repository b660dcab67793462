// "billing" of a scenario: what it is charged for besides the hours of its nodes; and storage of a size.

#include <fmt/format.h>

#include "sim/run/scenario_parts.hpp"

namespace ganymede {

PoolLink::Between between_places(const ScenarioPool& a, const ScenarioPool& b) {
  const bool same =
      a.catalog == b.catalog || (a.platform->provider == b.platform->provider && a.platform->provider != "private");
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
    case PoolLink::Between::zones:  // sent and received: both are charged
      return a.zone ? std::optional<double>(2 * *dollars(a.zone)) : std::nullopt;
    case PoolLink::Between::regions:
      return dollars(a.region);
    case PoolLink::Between::clouds: {
      // Half of what crosses leaves each end; what a private cloud's own line costs is not in its catalog.
      const bool known = (!a.internet.empty() || from.platform->provider == "private") &&
                         (!b.internet.empty() || to.platform->provider == "private");
      if (!known || (a.internet.empty() && b.internet.empty())) return std::nullopt;
      double sum = 0;
      for (const EgressPrices* end : {&a, &b})
        if (!end->internet.empty()) sum += static_cast<double>(end->internet.front().price.value) * 1e-6;
      return sum / 2;
    }
  }
  return std::nullopt;
}

Storage read_volume(const JsonNode& node, const Platform& platform, Volume& volume) {
  const auto refuse_empty = [&](const Storage& storage) {
    if (storage.provisioned && !storage.iops)
      node.fail(fmt::format("{} has the IOPS that are provisioned: {{\"class\": \"{}\", \"iops\": 3000}}", storage.name,
                            storage.name));
  };
  if (!node.is_object()) {
    const Storage& storage = platform.storage_class(node.as_string(), &node);
    refuse_empty(storage);
    return storage;
  }
  JsonObject in(node);
  const JsonNode name = in.required("class");
  Storage storage = platform.storage_class(name.as_string(), &name);
  if (auto size = in.optional("size")) {
    if (storage.object_store) size->fail(fmt::format("{} has no size: what is kept in it is charged", storage.name));
    volume.size = size->as_positive<Bytes>();
  }
  // What is provisioned beyond what comes with it is there, and is charged.
  if (auto iops = in.optional("iops")) {
    const double wanted = iops->as_number(1, 1e9);
    const double included = storage.iops.value_or(0);
    if (wanted > included && !storage.rates.per_iops_month)
      iops->fail(
          fmt::format("the catalog {} sells no more than {:g} IOPS of {}", platform.name, included, storage.name));
    volume.extra_iops = std::max(0.0, wanted - included);
    storage.iops = std::max(wanted, included);
  }
  if (auto rate = in.optional("throughput")) {
    const BytesPerSecond wanted = rate->as_positive<BytesPerSecond>();
    if (wanted > storage.read && !storage.rates.per_mbps_month)
      rate->fail(fmt::format("the catalog {} sells no more than {} of {}", platform.name, to_string(storage.read),
                             storage.name));
    volume.extra_mbps = std::max(0.0, (wanted - storage.read).si / 1e6);
    storage.read = std::max(storage.read, wanted);
    storage.write = std::max(storage.write, wanted);
  }
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
  charges.boot_disk_size = in.required("size").as_positive<Bytes>();
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
