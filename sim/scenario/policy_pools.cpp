// Pools that a scenario does not ask for but that its policy may use: the other market, other regions.

#include <fmt/format.h>

#include <algorithm>

#include "sim/scenario/sections.hpp"

namespace ganymede::sim {
namespace {

/// Adds a pool like the first one in `region` on `market`, unless there is one already or nothing is priced there.
void add_pool_like_first(Scenario& scenario, const std::string& region, platforms::Market market) {
  const ScenarioPool& first = scenario.pools.front();
  for (const auto& pool : scenario.pools)
    if (pool.pool.instance == first.pool.instance && pool.pool.region == region && pool.pool.market == market) return;
  const std::string zone = region == first.pool.region ? first.zone : "";
  const platforms::Price* price = platforms::find_price(first.instance(), region, market, zone);
  if (!price) return;
  ScenarioPool more;
  more.catalog = first.catalog;
  more.platform = first.platform;
  more.zone = zone;
  more.pool = first.pool;
  more.pool.region = region;
  more.pool.market = market;
  more.pool.nodes = 0;
  more.max_nodes = first.max_nodes;
  more.price = *price;
  more.name = default_name(more.pool, zone);
  set_default_hazards(more);
  // The scenario's description of its own spot nodes applies there too, except recordings, which are of one region.
  if (first.spot_choice && ((!first.spot_choice->capacity && !first.spot_choice->past) || region == first.pool.region))
    apply_spot_choice(more, *first.spot_choice);
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

void add_policy_pools(Scenario& scenario) {
  const policies::Policy& policy = *scenario.policy.policy;
  const policies::Pool first = scenario.pools.front().pool;
  if (policy.other_market)
    add_pool_like_first(
        scenario, first.region,
        first.market == platforms::Market::spot ? platforms::Market::on_demand : platforms::Market::spot);
  if (policy.other_regions)
    for (const std::string& region : priced_regions(scenario.pools.front().instance()))
      if (scenario.allowed_regions.empty() ||
          std::find(scenario.allowed_regions.begin(), scenario.allowed_regions.end(), region) !=
              scenario.allowed_regions.end())
        add_pool_like_first(scenario, region, first.market);
  const bool on_spot = std::any_of(scenario.pools.begin(), scenario.pools.end(), [](const ScenarioPool& pool) {
    return pool.pool.market == platforms::Market::spot;
  });
  for (const ScenarioPool& pool : scenario.pools)
    if (pool.spot_choice && !on_spot)
      scenario.warnings.push_back(
          fmt::format("\"spot\" of \"{}\" is not used: nothing is rented on the spot market", pool.name));
}

}  // namespace ganymede::sim
