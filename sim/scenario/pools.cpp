// "platform" of a scenario: one pool, or several with the links between them.

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "common/file.hpp"
#include "common/json.hpp"
#include "common/text.hpp"
#include "common/units.hpp"
#include "platforms/catalog.hpp"
#include "platforms/overlay.hpp"
#include "platforms/providers.hpp"
#include "sim/scenario/parts.hpp"
#include "sim/scenario/sections.hpp"

namespace ganymede::sim {
namespace {

constexpr std::int64_t kMaxNodes = 65536;  // of a pool
constexpr int kMaxWorkers = 65536;         // of a run, in GPUs

void read_size(JsonObject& in, ScenarioPool& pool, const platforms::Instance& instance) {
  auto nodes = in.optional("nodes");
  pool.pool.nodes = nodes ? static_cast<int>(nodes->as_integer(1, kMaxNodes)) : 1;
  if (nodes && instance.available && pool.pool.nodes > *instance.available)
    nodes->expected(fmt::format("at most {}: the platform has no more of {}", *instance.available, instance.name));
  auto most = in.optional("max_nodes");
  pool.max_nodes = most ? static_cast<int>(most->as_integer(pool.pool.nodes, kMaxNodes)) : pool.pool.nodes;
  if (most && instance.available && pool.max_nodes > *instance.available)
    most->expected(fmt::format("at most {}: the platform has no more of {}", *instance.available, instance.name));
  auto gpus = in.optional("gpus_per_node");
  pool.pool.gpus_per_node = gpus ? static_cast<int>(gpus->as_integer(1, kMaxNodes)) : instance.gpus;
  if (gpus && pool.pool.gpus_per_node > instance.gpus)
    gpus->expected(fmt::format("at most {}: {} has no more GPUs", instance.gpus, instance.name));
  if (std::int64_t{pool.max_nodes} * pool.pool.gpus_per_node > kMaxWorkers)
    in.node().fail(fmt::format("found {} nodes with {} GPUs each, expected at most {} GPUs in one run", pool.max_nodes,
                               pool.pool.gpus_per_node, kMaxWorkers));
}

void read_platform(JsonObject& in, ScenarioPool& pool, Fingerprint& fingerprint, ScenarioInputCache& cache) {
  platforms::PlatformChoice choice = platforms::read_platform_choice(in);
  pool.catalog = choice.catalog;
  pool.platform = std::make_shared<const platforms::Platform>(std::move(choice.platform));
  const std::string at = in.node().pointer() == "/" ? "" : in.node().pointer();
  if (choice.inline_platform) {  // it is part of the scenario's text
    pool.platform_hash = fnv1a(in.node().value().at("catalog").dump());
    return;
  }
  pool.platform_hash = platforms::is_provider(pool.catalog)
                           ? cache.embedded_hash(pool.catalog, platforms::catalog_text(pool.catalog))
                           : fnv1a(read_file(choice.folder / pool.catalog));
  fingerprint.replace(at + "/catalog", pool.platform_hash);
  if (choice.overlay.empty()) return;
  fingerprint.replace(at + "/overlay", choice.overlay_text);
  pool.platform_hash = fnv1a(fmt::format("{} {}", pool.platform_hash, choice.overlay_text));
}

/// The only region in which `instance` has a price. Throws ConfigError if it has a price in no region, or in several:
/// then the scenario must state "region".
std::string only_region(JsonObject& in, const JsonNode& instance_at, const platforms::Instance& instance) {
  const auto regions = priced_regions(instance);
  if (regions.empty()) instance_at.fail(fmt::format("{} has no price in any region", instance.name));
  if (regions.size() > 1) {
    for (const char* key : {"name", "zone", "spot", "lifetimes", "notice", "capacity", "prices", "carbon"})
      in.optional(key);
    in.finish();  // a misspelt key is the better explanation
    in.node().fail(fmt::format("the key \"region\" is missing; {} has prices in {}", instance.name, list_of(regions)));
  }
  return regions.front();
}

ScenarioPool read_pool(JsonObject& in, const std::vector<std::string>& allowed, Fingerprint& fingerprint,
                       ScenarioInputCache& cache) {
  ScenarioPool pool;
  read_platform(in, pool, fingerprint, cache);
  const JsonNode instance_at = in.required("instance");
  const platforms::Instance& instance = pool.platform->instance(instance_at.as_string(), &instance_at);
  pool.pool.instance = instance.name;
  read_size(in, pool, instance);

  auto market = in.optional("market");
  pool.pool.market = market ? platforms::read_market(*market) : platforms::Market::on_demand;
  auto region = in.optional("region");
  pool.pool.region = region ? region->as_string() : only_region(in, instance_at, instance);
  if (!allowed.empty() && std::find(allowed.begin(), allowed.end(), pool.pool.region) == allowed.end())
    (region ? *region : instance_at)
        .fail(fmt::format("{} is not among the allowed regions {}", pool.pool.region, list_of(allowed)));
  if (auto zone = in.optional("zone")) pool.zone = zone->as_string();
  pool.price = pool.platform->price(instance, pool.pool.region, pool.pool.market, region ? &*region : &instance_at,
                                    market ? &*market : nullptr, pool.zone);
  auto name = in.optional("name");
  pool.name = name ? name->as_string() : default_name(pool.pool, pool.zone);
  read_hazards(in, pool, fingerprint);
  return pool;
}

}  // namespace

std::vector<std::string> priced_regions(const platforms::Instance& instance) {
  std::set<std::string> regions;
  for (const auto& price : instance.prices) regions.insert(price.region);
  return {regions.begin(), regions.end()};
}

std::string default_name(const policies::Pool& pool, const std::string& zone) {
  return fmt::format("{} {} {}", pool.instance, zone.empty() ? pool.region : zone, platforms::to_string(pool.market));
}

ScenarioPool pool_of(const RentedNodes& nodes) {
  ScenarioPool pool;
  pool.catalog = nodes.catalog;
  pool.platform = nodes.platform;
  pool.platform_hash = nodes.catalog_hash;
  pool.pool = nodes.pool;
  pool.max_nodes = nodes.pool.nodes;
  pool.price = nodes.platform->price(pool.instance(), nodes.pool.region, nodes.pool.market);
  pool.name = nodes.name.empty() ? default_name(nodes.pool) : nodes.name;
  set_default_hazards(pool);
  return pool;
}

std::size_t find_pool(const JsonNode& node, const Scenario& scenario) {
  const std::vector<std::string> names = names_of(scenario.pools);
  const std::string name = node.as_choice(names);
  return static_cast<std::size_t>(std::find(names.begin(), names.end(), name) - names.begin());
}

void read_pools(const JsonNode& node, Scenario& scenario, Fingerprint& fingerprint, ScenarioInputCache& cache) {
  JsonObject in(node);
  if (auto allowed = in.optional("allowed_regions")) {
    for (const auto& region : allowed->as_array()) scenario.allowed_regions.push_back(region.as_string());
    if (scenario.allowed_regions.empty()) allowed->expected("at least one region");
  }
  auto pools = in.optional("pools");
  if (!pools) {
    scenario.pools.push_back(read_pool(in, scenario.allowed_regions, fingerprint, cache));
    in.finish();
    return;
  }
  for (const JsonNode& entry : pools->as_array()) {
    JsonObject one(entry);
    scenario.pools.push_back(read_pool(one, scenario.allowed_regions, fingerprint, cache));
    one.finish();
  }
  if (scenario.pools.empty()) pools->expected("at least one pool");
  if (auto links = in.optional("links")) read_links(*links, scenario);
  in.finish();
  check_links(node, scenario);
}

// Links between the pools of a scenario, and what data that crosses them costs.

bool same_place(const ScenarioPool& a, const ScenarioPool& b) {
  return a.catalog == b.catalog && a.pool.region == b.pool.region && a.zone == b.zone;
}

bool same_nodes(const ScenarioPool& a, const ScenarioPool& b) {
  return a.platform_hash == b.platform_hash && a.pool.instance == b.pool.instance &&
         a.pool.gpus_per_node == b.pool.gpus_per_node && a.step_factor == b.step_factor;
}

PoolLink::Between between_places(const ScenarioPool& a, const ScenarioPool& b) {
  const bool same = a.catalog == b.catalog || (a.platform->provider == b.platform->provider &&
                                               !platforms::provider_of(a.platform->provider).owned);
  if (!same) return PoolLink::Between::clouds;
  return a.pool.region == b.pool.region ? PoolLink::Between::zones : PoolLink::Between::regions;
}

std::optional<double> transfer_price(const ScenarioPool& from, const ScenarioPool& to, PoolLink::Between between) {
  const auto dollars = [](const std::optional<MicroUsd>& money) {
    return money ? std::optional<double>(static_cast<double>(money->value) * 1e-6) : std::nullopt;
  };
  const platforms::EgressPrices& a = from.platform->transfer;
  const platforms::EgressPrices& b = to.platform->transfer;
  switch (between) {
    case PoolLink::Between::zones:
      return a.zone ? std::optional<double>((a.zone_charged_at_both_ends ? 2 : 1) * *dollars(a.zone)) : std::nullopt;
    case PoolLink::Between::regions:
      return dollars(a.region);
    case PoolLink::Between::clouds: {
      // Half of the bytes leave each end. The catalog of a private cloud states no price for its own line, which counts
      // as free.
      const bool known = (!a.internet.empty() || platforms::provider_of(from.platform->provider).owned) &&
                         (!b.internet.empty() || platforms::provider_of(to.platform->provider).owned);
      if (!known || (a.internet.empty() && b.internet.empty())) return std::nullopt;
      double sum = 0;
      for (const platforms::EgressPrices* end : {&a, &b})
        if (!end->internet.empty())
          sum += static_cast<double>(end->internet.front().price.value) * 1e-6 *
                 (platforms::bytes_of(platforms::VolumeUnit::gb) / platforms::bytes_of(end->internet_unit));
      return sum / 2;
    }
  }
  return std::nullopt;
}

void read_links(const JsonNode& node, Scenario& scenario) {
  for (const JsonNode& entry : node.as_array()) {
    JsonObject in(entry);
    const JsonNode between = in.required("between");
    const auto ends = between.as_array();
    if (ends.size() != 2) between.expected("the names of two pools");
    PoolLink link;
    link.a = find_pool(ends[0], scenario);
    link.b = find_pool(ends[1], scenario);
    if (link.a == link.b) between.expected("two different pools");
    link.bandwidth = in.required("bandwidth").as_positive<BytesPerSecond>();
    link.latency = in.required("latency").as_quantity<Seconds>();
    const ScenarioPool& a = scenario.pools[link.a];
    const ScenarioPool& b = scenario.pools[link.b];
    link.between = between_places(a, b);
    if (auto usd = in.optional("usd_per_gb")) {
      link.usd_per_gb = usd->as_number(0, 1000);
    } else if (const auto price = transfer_price(a, b, link.between)) {
      link.usd_per_gb = *price;
      link.by_tiers = link.between == PoolLink::Between::clouds;
    } else {
      scenario.warnings.push_back(
          fmt::format("no price is known of data between \"{}\" and \"{}\", and none is in "
                      "the bill (\"usd_per_gb\" of the link says it)",
                      a.name, b.name));
    }
    in.finish();
    scenario.links.push_back(link);
  }
}

void check_links(const JsonNode& node, const Scenario& scenario) {
  const auto& pools = scenario.pools;
  for (std::size_t a = 0; a < pools.size(); ++a)
    for (std::size_t b = a + 1; b < pools.size(); ++b) {
      if (pools[a].name == pools[b].name)
        node.fail(fmt::format("two pools are called \"{}\"; give them a \"name\"", pools[a].name));
      const bool linked = std::any_of(scenario.links.begin(), scenario.links.end(), [&](const PoolLink& link) {
        return (link.a == a && link.b == b) || (link.a == b && link.b == a);
      });
      if (!linked && !same_place(pools[a], pools[b]))
        node.fail(
            fmt::format("no link joins \"{}\" and \"{}\"; expected one in \"links\": {{\"between\": [...], "
                        "\"bandwidth\": \"1Gbit/s\", \"latency\": \"30ms\"}}",
                        pools[a].name, pools[b].name));
    }
}

}  // namespace ganymede::sim
