#include "sim/run/run_description.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "calibration/device_memory.hpp"

namespace ganymede::sim {
namespace {

const char* mode_name(Mode mode) {
  switch (mode) {
    case Mode::all_reduce:
      return "all-reduce";
    case Mode::async_parameter_server:
      return "async-parameter-server";
    case Mode::local_sgd:
      return "local-sgd";
    case Mode::gossip:
      return "gossip";
  }
  return "";
}

/// The policy's name with those settings that differ from their defaults: "predictive (usd_per_hour_waited 50)".
std::string policy_text(const PolicyChoice& choice) {
  std::string settings;
  for (std::size_t i = 0; i < choice.settings.size(); ++i)
    if (const policies::PolicySetting& setting = choice.policy->settings[i];
        choice.settings[i] != setting.default_value)
      settings += fmt::format("{}{} {:g}", settings.empty() ? "" : ", ", setting.name, choice.settings[i]);
  if (choice.blind) settings += settings.empty() ? "blind" : ", blind";
  return std::string(choice.policy->name) + (settings.empty() ? "" : " (" + settings + ")");
}

/// Returns text(pool) for the pools that the scenario asks for, without repetitions, joined by " + ".
template <class Text>
std::string joined(const Scenario& scenario, Text&& text) {
  std::string all;
  std::set<std::string> seen;
  for (const auto& pool : scenario.pools) {
    if (pool.pool.nodes == 0) continue;
    const std::string one = text(pool);
    if (seen.insert(one).second) all += (all.empty() ? "" : " + ") + one;
  }
  return all;
}

LaunchRequest launch_request(const Scenario& scenario) {
  LaunchRequest launch{scenario.trace.model,
                       scenario.trace.precision,
                       scenario.dataset.name,
                       static_cast<int>(scenario.batch_per_gpu()),
                       scenario.images_a_step(scenario.workers()),
                       {}};
  for (const auto& pool : scenario.pools)
    if (pool.pool.nodes > 0)
      launch.pools.push_back({pool.platform->name, pool.pool.region, pool.zone,
                              std::string(platforms::to_string(pool.pool.market)), pool.pool.instance, pool.gpu().name,
                              pool.pool.nodes, pool.pool.gpus_per_node});
  return launch;
}

}  // namespace

void describe(Result& result, const Scenario& scenario) {
  const ScenarioPool& first = scenario.pools.front();
  result.platform =
      joined(scenario, [](const ScenarioPool& pool) { return pool.platform->name + " " + pool.pool.region; });
  result.market =
      joined(scenario, [](const ScenarioPool& pool) { return std::string(platforms::to_string(pool.pool.market)); });
  result.allocation = joined(
      scenario, [](const ScenarioPool& pool) { return fmt::format("{} x {}", pool.pool.nodes, pool.pool.instance); });
  result.gpu = joined(scenario, [](const ScenarioPool& pool) { return pool.gpu().name; });
  result.gpus = scenario.workers();
  result.launch = launch_request(scenario);
  result.scheme = scenario.workers() > 1 ? scenario.synchronization.scheme.name() : "none";
  result.mode = mode_name(scenario.synchronization.mode);
  result.placement =
      scenario.synchronization.placement == Placement::component_split ? "component-split" : "data-parallel";
  result.policy = policy_text(scenario.policy);
  result.fidelity = scenario.fidelity == Fidelity::message ? "message" : "sampled";
  for (const ScenarioPool& pool : scenario.pools)
    for (const std::size_t stage : scenario.stages)
      result.memory =
          std::max(result.memory, Bytes{calibration::device_memory(scenario.trace, scenario.trace.batches[stage],
                                                                   pool.gpu(), scenario.workers() > 1)
                                            .expected});
  result.hash = scenario.hash;
  result.tool = "ganymede " GANYMEDE_VERSION;
  if (!scenario.content.empty()) {
    result.scenario.text = scenario.content;
    result.file_hashes = scenario.file_hashes;
  }
  result.seed = scenario.seed;
  result.fabric_source = first.platform->fabric_label(first.instance(), first.max_nodes, first.pool.gpus_per_node);
  result.software = fmt::format("{} {} ({})", scenario.trace.software.name, scenario.trace.software.version,
                                scenario.trace.software.backend);
  result.prices_as_of = first.price.as_of;
  result.deadline = scenario.deadline;
  result.budget = scenario.budget;
}

}  // namespace ganymede::sim
