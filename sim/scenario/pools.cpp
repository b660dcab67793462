// "platform" of a scenario: one pool, or several with the links between them.

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "common/file.hpp"
#include "common/json.hpp"
#include "common/text.hpp"
#include "platforms/catalog.hpp"
#include "platforms/overlay.hpp"
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
  if (!choice.inline_platform)  // an inline platform is part of the scenario's text
    fingerprint.replace(at + "/catalog", platforms::is_provider(pool.catalog)
                                             ? cache.embedded_hash(pool.catalog, platforms::catalog_text(pool.catalog))
                                             : fnv1a(read_file(choice.folder / pool.catalog)));
  if (!choice.overlay.empty()) fingerprint.replace(at + "/overlay", choice.overlay_text);
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
  pool.pool = nodes.pool;
  pool.max_nodes = nodes.pool.nodes;
  pool.price = nodes.platform->price(pool.instance(), nodes.pool.region, nodes.pool.market);
  pool.name = nodes.name.empty() ? default_name(nodes.pool) : nodes.name;
  set_default_hazards(pool);
  return pool;
}

std::size_t find_pool(const JsonNode& node, const Scenario& scenario) {
  std::vector<std::string> names;
  for (const auto& pool : scenario.pools) names.push_back(pool.name);
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

}  // namespace ganymede::sim
