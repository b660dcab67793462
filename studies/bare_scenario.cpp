#include "studies/bare_scenario.hpp"

namespace ganymede {

Scenario bare_scenario(std::shared_ptr<const Platform> platform, const std::string& instance, int nodes,
                       int gpus_per_node, const StepTrace& trace, std::int64_t steps) {
  Scenario scenario;
  scenario.file = platform->name;
  scenario.trace = trace;
  scenario.steps = steps;
  scenario.images = steps * trace.batches.front().batch * nodes * gpus_per_node;
  ScenarioPool pool;
  pool.name = instance;
  pool.platform = std::move(platform);
  pool.pool = {instance, "here", Market::on_demand, nodes, gpus_per_node};
  pool.max_nodes = nodes;
  scenario.pools = {pool};
  scenario.stages = {0};
  scenario.stage_shares = {1};
  scenario.synchronization.scheme = parse_scheme("ring");
  scenario.policy.policy = &default_policy();
  scenario.seed = trace.seed;
  return scenario;
}

}  // namespace ganymede
