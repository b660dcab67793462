// "platform" of a scenario: one pool, or several with the links between them; and what a policy may use besides.

#include <algorithm>
#include <set>

#include "common/file.hpp"
#include "platforms/catalog.hpp"
#include "platforms/overlay.hpp"
#include "platforms/providers.hpp"
#include "sim/run/scenario_parts.hpp"

namespace ganymede {
namespace {

constexpr std::int64_t kMaxNodes = 65536;
// Every message of a step is simulated: a ring of 512 workers takes some ten seconds, and the cost grows with their
// square.
constexpr int kMaxWorkers = 65536;

constexpr double kSecondsOfAMonth = 730 * 3600.0;

/// Where `instance` has a price.
std::vector<std::string> priced_regions(const Instance& instance) {
  std::set<std::string> regions;
  for (const auto& price : instance.prices) regions.insert(price.region);
  return {regions.begin(), regions.end()};
}

std::string default_name(const Pool& pool, const std::string& zone = "") {
  return fmt::format("{} {} {}", pool.instance, zone.empty() ? pool.region : zone, to_string(pool.market));
}

Lifetimes read_lifetimes(const JsonNode& node) {
  JsonObject in(node);
  Lifetimes lifetimes;
  lifetimes.source = "the scenario";
  const JsonNode what = in.one_of("mean", "bathtub");
  if (what.pointer().ends_with("/mean")) {
    lifetimes.mean = what.as_positive<Seconds>();
  } else {
    lifetimes.kind = Lifetimes::Kind::bathtub;
    lifetimes.most = what.as_positive<Seconds>();
  }
  if (auto back = in.optional("back_after")) lifetimes.back_after = back->as_quantity<Seconds>();
  in.finish();
  return lifetimes;
}

Series read_recording(const JsonNode& node, Fingerprint& fingerprint) {
  const std::filesystem::path file = node.directory() / node.as_string();
  Series series = read_series(file);
  fingerprint.replace(node.pointer(), read_file(file));
  return series;
}

/// What a user's own platform says of its spot nodes stands; what a catalog's source does is said, and not used: the
/// share of capacity that is reclaimed in a month says how long a node lasts only if each is reclaimed once.
void default_hazards(ScenarioPool& pool) {
  if (pool.pool.market != Market::spot) return;
  pool.notice = provider_of(pool.platform->provider).spot_notice;
  pool.spot = Spot::drawn;
  if (!pool.price.interrupted_per_month || is_provider(pool.catalog)) return;
  pool.spot = *pool.price.interrupted_per_month > 0 ? Spot::stated : Spot::uninterrupted;
  if (pool.spot == Spot::uninterrupted) return;
  pool.lifetimes.emplace();
  pool.lifetimes->mean = Seconds{kSecondsOfAMonth / -portable_log(1 - *pool.price.interrupted_per_month)};
  pool.lifetimes->source = "the platform's interruption rate";
}

SpotWish read_spot(const JsonNode& node, Fingerprint& fingerprint) {
  SpotWish wish;
  if (node.is_object()) {
    JsonObject in(node);
    wish.how = Spot::recorded;
    wish.capacity = read_recording(in.required("capacity"), fingerprint);
    in.finish();
    return wish;
  }
  constexpr std::pair<const char*, Spot> kChoices[] = {{"drawn", Spot::drawn},
                                                       {"calm", Spot::calm},
                                                       {"typical", Spot::typical},
                                                       {"harsh", Spot::harsh},
                                                       {"uninterrupted", Spot::uninterrupted}};
  std::vector<std::string> names;
  for (const auto& [name, how] : kChoices) names.emplace_back(name);
  const std::string chosen = node.as_choice(names);
  for (const auto& [name, how] : kChoices)
    if (chosen == name) wish.how = how;
  return wish;
}

/// Spot pools only.
void follow(ScenarioPool& pool, const SpotWish& wish) {
  if (pool.pool.market != Market::spot) return;
  pool.spot = wish.how;
  pool.capacity = wish.capacity;
  pool.lifetimes.reset();
}

void read_hazards(JsonObject& in, ScenarioPool& pool, Fingerprint& fingerprint) {
  default_hazards(pool);
  auto spot = in.optional("spot");
  auto lifetimes = in.optional("lifetimes");
  auto capacity = in.optional("capacity");
  if (spot && (lifetimes || capacity))
    spot->fail(fmt::format("\"{}\" stands there too, and only one can say when nodes are taken back",
                           lifetimes ? "lifetimes" : "capacity"));
  if (spot) pool.spot_wish = read_spot(*spot, fingerprint);
  if (pool.spot_wish) follow(pool, *pool.spot_wish);
  if (lifetimes) {
    pool.lifetimes = read_lifetimes(*lifetimes);
    pool.spot = Spot::stated;
  }
  if (auto notice = in.optional("notice")) pool.notice = notice->as_quantity<Seconds>();
  if (capacity) {
    pool.capacity = read_recording(*capacity, fingerprint);
    pool.lifetimes.reset();  // the recording says who is taken back
    pool.spot = Spot::recorded;
  }
  if (auto prices = in.optional("prices")) pool.prices = read_recording(*prices, fingerprint);
  if (auto carbon = in.optional("carbon")) pool.carbon = read_recording(*carbon, fingerprint);
}

void read_size(JsonObject& in, ScenarioPool& pool, const Instance& instance) {
  auto nodes = in.optional("nodes");
  pool.pool.nodes = nodes ? static_cast<int>(nodes->as_integer(1, kMaxNodes)) : 1;
  if (nodes && instance.available && pool.pool.nodes > *instance.available)
    nodes->expected(fmt::format("at most {}: the platform has no more of {}", *instance.available, instance.name));
  auto most = in.optional("max_nodes");
  pool.most = most ? static_cast<int>(most->as_integer(pool.pool.nodes, kMaxNodes)) : pool.pool.nodes;
  if (most && instance.available && pool.most > *instance.available)
    most->expected(fmt::format("at most {}: the platform has no more of {}", *instance.available, instance.name));
  auto gpus = in.optional("gpus_per_node");
  pool.pool.gpus_per_node = gpus ? static_cast<int>(gpus->as_integer(1, kMaxNodes)) : instance.gpus;
  if (gpus && pool.pool.gpus_per_node > instance.gpus)
    gpus->expected(fmt::format("at most {}: {} has no more GPUs", instance.gpus, instance.name));
  if (std::int64_t{pool.most} * pool.pool.gpus_per_node > kMaxWorkers)
    in.node().fail(fmt::format("found {} nodes with {} GPUs each, expected at most {} GPUs in one run", pool.most,
                               pool.pool.gpus_per_node, kMaxWorkers));
}

ScenarioPool read_pool(JsonObject& in, const std::vector<std::string>& allowed, Fingerprint& fingerprint) {
  ScenarioPool pool;
  PlatformChoice choice = read_platform_choice(in);
  pool.catalog = choice.catalog;
  pool.platform = std::make_shared<const Platform>(std::move(choice.platform));
  const std::string at = in.node().pointer() == "/" ? "" : in.node().pointer();
  if (!choice.inline_platform)  // else the scenario's text has it
    fingerprint.replace(at + "/catalog", is_provider(pool.catalog)
                                             ? embedded_hash(pool.catalog, catalog_text(pool.catalog))
                                             : fnv1a(read_file(choice.folder / pool.catalog)));
  if (!choice.overlay.empty()) fingerprint.replace(at + "/overlay", choice.overlay_text);

  const JsonNode instance_at = in.required("instance");
  const Instance& instance = pool.platform->instance(instance_at.as_string(), &instance_at);
  pool.pool.instance = instance.name;
  read_size(in, pool, instance);

  auto market = in.optional("market");
  pool.pool.market = market ? read_market(*market) : Market::on_demand;
  auto region = in.optional("region");
  if (region) {
    pool.pool.region = region->as_string();
  } else {
    const auto regions = priced_regions(instance);
    if (regions.empty()) instance_at.fail(fmt::format("{} has no price in any region", instance.name));
    if (regions.size() > 1) {
      for (const char* key : {"name", "zone", "spot", "lifetimes", "notice", "capacity", "prices", "carbon"})
        in.optional(key);
      in.finish();  // a misspelt key is the better explanation
      in.node().fail(
          fmt::format("the key \"region\" is missing; {} has prices in {}", instance.name, list_of(regions)));
    }
    pool.pool.region = regions.front();
  }
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

bool same_place(const ScenarioPool& a, const ScenarioPool& b) {
  return a.catalog == b.catalog && a.pool.region == b.pool.region && a.zone == b.zone;
}

/// Pools of several places exchange gradients over links that only the user knows.
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

void offer(Scenario& scenario, const std::string& region, Market market) {
  const ScenarioPool& first = scenario.pools.front();
  for (const auto& pool : scenario.pools)
    if (pool.pool.instance == first.pool.instance && pool.pool.region == region && pool.pool.market == market) return;
  const std::string zone = region == first.pool.region ? first.zone : "";
  const Price* price = find_price(first.instance(), region, market, zone);
  if (!price) return;
  ScenarioPool more;
  more.catalog = first.catalog;
  more.platform = first.platform;
  more.zone = zone;
  more.pool = first.pool;
  more.pool.region = region;
  more.pool.market = market;
  more.pool.nodes = 0;
  more.most = first.most;
  more.price = *price;
  more.name = default_name(more.pool, zone);
  default_hazards(more);
  // What the scenario says of its market holds there too, for want of anything better; a recording is of one region.
  if (first.spot_wish && (!first.spot_wish->capacity || region == first.pool.region)) follow(more, *first.spot_wish);
  if (market == first.pool.market && first.lifetimes && first.lifetimes->source == "the scenario") {
    more.lifetimes = first.lifetimes;
    more.spot = Spot::stated;
  }
  if (market == first.pool.market) more.notice = first.notice;
  if (region != first.pool.region) {
    const auto moving = transfer_price(first, more, PoolLink::Between::regions);
    scenario.links.push_back({0, scenario.pools.size(), {}, {}, moving.value_or(0), PoolLink::Between::regions});
    const std::string warning =
        fmt::format("no price is known of data between regions of {}, and none is in the bill", first.platform->name);
    if (!moving && std::find(scenario.warnings.begin(), scenario.warnings.end(), warning) == scenario.warnings.end())
      scenario.warnings.push_back(warning);
  }
  scenario.pools.push_back(std::move(more));
}

}  // namespace

std::string_view risk_of(Spot spot) {
  switch (spot) {
    case Spot::none:
      return "none";
    case Spot::uninterrupted:
    case Spot::stated:
      return "stated";
    case Spot::recorded:
      return "measured";
    case Spot::drawn:
      return "assumed";
    default:
      return "preset";
  }
}

std::string less_sure(std::string_view a, std::string_view b) {
  constexpr std::string_view kFromTheSurest[] = {"", "none", "measured", "stated", "preset", "assumed"};
  const auto place = [&](std::string_view risk) {
    return std::find(std::begin(kFromTheSurest), std::end(kFromTheSurest), risk);
  };
  return std::string(place(a) < place(b) ? b : a);
}

std::size_t find_pool(const JsonNode& node, const Scenario& scenario) {
  std::vector<std::string> names;
  for (const auto& pool : scenario.pools) names.push_back(pool.name);
  const std::string name = node.as_choice(names);
  return static_cast<std::size_t>(std::find(names.begin(), names.end(), name) - names.begin());
}

void read_pools(const JsonNode& node, Scenario& scenario, Fingerprint& fingerprint) {
  JsonObject in(node);
  if (auto allowed = in.optional("allowed_regions")) {
    for (const auto& region : allowed->as_array()) scenario.allowed_regions.push_back(region.as_string());
    if (scenario.allowed_regions.empty()) allowed->expected("at least one region");
  }
  auto pools = in.optional("pools");
  if (!pools) {
    scenario.pools.push_back(read_pool(in, scenario.allowed_regions, fingerprint));
    in.finish();
    return;
  }
  for (const JsonNode& entry : pools->as_array()) {
    JsonObject one(entry);
    scenario.pools.push_back(read_pool(one, scenario.allowed_regions, fingerprint));
    one.finish();
  }
  if (scenario.pools.empty()) pools->expected("at least one pool");
  if (auto links = in.optional("links")) read_links(*links, scenario);
  in.finish();
  check_links(node, scenario);
}

void add_offers(Scenario& scenario) {
  const Policy& policy = *scenario.policy.policy;
  const Pool first = scenario.pools.front().pool;
  if (policy.other_market)
    offer(scenario, first.region, first.market == Market::spot ? Market::on_demand : Market::spot);
  if (policy.other_regions)
    for (const std::string& region : priced_regions(scenario.pools.front().instance()))
      if (scenario.allowed_regions.empty() ||
          std::find(scenario.allowed_regions.begin(), scenario.allowed_regions.end(), region) !=
              scenario.allowed_regions.end())
        offer(scenario, region, first.market);
  const bool on_spot = std::any_of(scenario.pools.begin(), scenario.pools.end(),
                                   [](const ScenarioPool& pool) { return pool.pool.market == Market::spot; });
  for (const ScenarioPool& pool : scenario.pools)
    if (pool.spot_wish && !on_spot)
      scenario.warnings.push_back(
          fmt::format("\"spot\" of \"{}\" is not used: nothing is rented on the spot market", pool.name));
}

}  // namespace ganymede
