#include <gtest/gtest.h>

#include "common/json.hpp"
#include "sim/scenario/scenario.hpp"
#include "sim/steps/worker_models.hpp"

namespace ganymede::sim {
namespace {

// A policy's links all begin at the first region. While a run moves on from a second one it may train in that and in a
// third.
TEST(SiteLinks, BetweenRegionsWithoutALinkAreAssumed) {
  const Scenario scenario = read_scenario(JsonNode::parse(R"({
    "schema": "ganymede.scenario/1",
    "workload": { "trace": "recorded:dcgan-28-cpu", "batch_per_gpu": 64, "steps": 100 },
    "platform": { "catalog": "aws", "region": "us-east-1", "instance": "p3.2xlarge", "nodes": 3 },
    "synchronization": { "scheme": "ring" }, "policy": { "name": "carbon-aware" }, "seed": 1 })",
                                                          "scenario.json"));
  ASSERT_GE(scenario.pools.size(), 3U);
  Configuration configuration;
  configuration.nodes.assign(scenario.pools.size(), 0);
  configuration.nodes[1] = 2;
  configuration.nodes[2] = 1;
  configuration.network = 0.5;
  const WorkerLayout layout = layout_workers(scenario, configuration);
  ASSERT_EQ(layout.sites.size(), 2U);
  const std::vector<SiteLink> links = site_links(scenario, configuration, layout);
  ASSERT_EQ(links.size(), 1U);
  EXPECT_DOUBLE_EQ(links[0].bandwidth.si, 0.5 * 5e9 / 8);
  EXPECT_DOUBLE_EQ(links[0].latency.si, 0.03);
}

}  // namespace
}  // namespace ganymede::sim
