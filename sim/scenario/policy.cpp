// "policy" of a scenario: a name, its settings, the table of a policy that learns, the command of an external one.

#include <fmt/format.h>

#include <algorithm>

#include "common/errors.hpp"
#include "common/file.hpp"
#include "common/json.hpp"
#include "common/units.hpp"
#include "policies/q_learning.hpp"
#include "sim/scenario/sections.hpp"

namespace ganymede::sim {
namespace {

std::shared_ptr<const policies::PolicyTable> read_table(const JsonNode& at, Fingerprint& fingerprint) {
  const std::filesystem::path file = at.directory() / at.as_string();
  std::string text;
  try {
    text = read_file(file);
  } catch (const ConfigError& error) {  // says which file; which member names it is said here
    at.fail(error.what());
  }
  fingerprint.replace(at.pointer(), text);
  JsonObject in(JsonNode::parse(text, file.string()));
  check_schema(in, "ganymede.q-table/1");
  for (const char* about : {"episodes", "learners", "scenario", "seeds", "judged"}) in.optional(about);
  auto table = std::make_shared<policies::PolicyTable>();
  for (const auto& [state, row] : in.required("values").as_map()) {
    const auto values = row.as_numbers(-1e300, 1e300);
    if (values.size() != policies::kQActions) row.expected("three numbers: of halving, keeping and doubling the nodes");
    (*table)[state] = values;
  }
  in.finish();
  return table;
}

void read_command(JsonObject& in, PolicyChoice& choice) {
  const auto given = in.optional("command");
  if (!given)
    in.node().fail("the key \"command\" is missing: a program and its arguments; `ganymede example policy` prints one");
  const JsonNode& command = *given;
  if (command.is_string()) {
    choice.command = shell_command(command.as_string(), command.directory());
  } else {
    for (const auto& word : command.as_array()) choice.command.push_back(word.as_string());
    if (choice.command.empty()) command.expected("a program and its arguments, such as [\"python3\", \"policy.py\"]");
    // A relative word that names a file in the scenario's folder becomes that file's path; other words stay as they
    // are.
    for (auto& word : choice.command) {
      const std::filesystem::path beside = command.directory() / word;
      if (std::filesystem::path(word).is_relative() && std::filesystem::is_regular_file(beside)) word = beside.string();
    }
  }
  if (auto limit = in.optional("limit")) choice.limit = limit->as_positive<Seconds>();
}

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
  more.platform_hash = first.platform_hash;
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

std::vector<std::string> shell_command(const std::string& line, const std::filesystem::path& folder) {
  const std::string start = folder.empty() ? "." : folder.string();
  // The line may be compound. A shell whose line is one simple command becomes that command.
  return {"/bin/sh", "-c", "cd \"$0\" && exec /bin/sh -c \"$1\"", start, line};
}

void read_policy(const JsonNode& node, Scenario& scenario, Fingerprint& fingerprint) {
  JsonObject in(node);
  PolicyChoice& choice = scenario.policy;
  choice.policy = policies::find_policy(in.required("name").as_choice(policies::policy_names()));
  for (const policies::PolicySetting& setting : choice.policy->settings) {
    auto value = in.optional(setting.name);
    choice.settings.push_back(value ? value->as_number(setting.low, setting.high) : setting.default_value);
  }
  if (auto every = in.optional("every")) choice.every = every->as_positive<Seconds>();
  if (auto blind = in.optional("blind")) choice.blind = blind->as_bool();
  if (choice.policy->learns) {
    const auto table = in.optional("table");
    if (!table) node.fail("the key \"table\" is missing: a file that `ganymede learn` has written");
    choice.table = read_table(*table, fingerprint);
  }
  if (!choice.policy->decide) read_command(in, choice);
  in.finish();
}

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
