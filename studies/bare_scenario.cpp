#include "studies/bare_scenario.hpp"

namespace ganymede::studies {

sim::Scenario bare_scenario(std::shared_ptr<const platforms::Platform> platform, const std::string& instance, int nodes,
                            int gpus_per_node, const traces::StepTrace& trace, std::int64_t steps) {
  sim::Scenario scenario;
  scenario.file = platform->name;
  scenario.trace = std::make_shared<const traces::StepTrace>(trace);
  scenario.steps = steps;
  scenario.images = steps * trace.batches.front().batch * nodes * gpus_per_node;
  sim::ScenarioPool pool;
  pool.name = instance;
  pool.platform = std::move(platform);
  pool.pool = {instance, "here", platforms::Market::on_demand, nodes, gpus_per_node};
  pool.max_nodes = nodes;
  scenario.pools = {pool};
  scenario.stages = {0};
  scenario.stage_shares = {1};
  scenario.synchronization.scheme = sim::parse_scheme("ring");
  scenario.policy.policy = &policies::default_policy();
  scenario.seed = trace.seed;
  return scenario;
}

}  // namespace ganymede::studies
