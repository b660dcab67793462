// Links between the pools of a scenario, and what data that crosses them costs.

#include <fmt/format.h>

#include <algorithm>

#include "common/json.hpp"
#include "common/units.hpp"
#include "platforms/providers.hpp"
#include "sim/scenario/sections.hpp"

namespace ganymede::sim {

bool same_place(const ScenarioPool& a, const ScenarioPool& b) {
  return a.catalog == b.catalog && a.pool.region == b.pool.region && a.zone == b.zone;
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
