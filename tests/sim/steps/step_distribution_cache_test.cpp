// Tests which runs share an entry of a StepDistributionCache, and which do not.

#include "sim/steps/step_distribution_cache.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/errors.hpp"
#include "common/json_value.hpp"
#include "common/units.hpp"
#include "sim/scenario/scenario_files.hpp"
#include "sim/steps/step_simulator.hpp"

namespace ganymede::sim {
namespace {

using testing::ElementsAre;

Configuration nodes(int count) {
  Configuration configuration;
  configuration.nodes = {count};
  return configuration;
}

TEST(StepDistributionCache, MakesADistributionOnceForEachKey) {
  StepDistributionCache cache;
  int made = 0;
  const auto make = [&] {
    StepDistribution distribution;
    distribution.workers = ++made;
    return distribution;
  };
  const auto first = cache.distribution("a", make);
  EXPECT_EQ(cache.distribution("a", make), first);
  EXPECT_EQ(cache.distribution("b", make)->workers, 2);
  EXPECT_EQ(made, 2);
}

TEST(StepDistributionCache, TakesOverWhatAnotherProcessHasAdded) {
  StepDistributionCache child, parent;
  const auto make = [] {
    StepDistribution distribution;
    distribution.mean = Seconds{0.1};
    return distribution;
  };
  child.distribution("a", make);
  parent.take_in(child.take_new());
  const auto known = parent.distribution("a", []() -> StepDistribution { throw Failure("it is known"); });
  EXPECT_EQ(known->mean, Seconds{0.1});
  EXPECT_EQ(parent.take_new().size(), 0);  // it comes from the child
  child.distribution("b", make);
  EXPECT_EQ(child.take_new().size(), 1);
}

TEST(StepDistributionCache, KeepsNothingOfWhatCouldNotBeMade) {
  StepDistributionCache cache;
  EXPECT_THROW(cache.distribution("a", []() -> StepDistribution { throw ConfigError("no"); }), ConfigError);
  EXPECT_NE(cache.distribution("a", [] { return StepDistribution{}; }), nullptr);
}

// Seed, deadline and faults do not change the steps of a configuration; the number of nodes does.
TEST(StepDistributionCache, IsSharedByRunsWhoseStepsAreTheSame) {
  const ScenarioFiles files;
  const Scenario scenario = files.load(ScenarioFiles::basic());
  const Scenario other = files.load_with("/deadline", "1h");
  const Scenario another_scheme = files.load_with("/synchronization/scheme", "reduce-to-one");
  EXPECT_EQ(other.step_fingerprint, scenario.step_fingerprint);
  EXPECT_NE(another_scheme.step_fingerprint, scenario.step_fingerprint);
  StepDistributionCache cache;
  ScenarioSteps steps(scenario, cache), of_other(other, cache);
  EXPECT_EQ(&steps.distribution(nodes(2)), &of_other.distribution(nodes(2)));
  EXPECT_NE(&steps.distribution(nodes(2)), &steps.distribution(nodes(1)));
  EXPECT_EQ(&steps.workload(0, 0), &of_other.workload(0, 0));
  StepDistributionCache cold;
  ScenarioSteps alone(scenario, cold);
  EXPECT_NE(&alone.distribution(nodes(2)), &steps.distribution(nodes(2)));
  EXPECT_EQ(alone.distribution(nodes(2)).mean, steps.distribution(nodes(2)).mean);
}

/// Eight p3.2xlarge as `pools` of one catalog have it.
Scenario with_pools(const std::string& pools) {
  return read_scenario(JsonNode::parse(R"({ "schema": "ganymede.scenario/1",
    "workload": { "trace": "recorded:dcgan-28-cpu", "batch_per_gpu": 64, "steps": 1000 },
    "platform": )" + pools + R"(, "synchronization": { "scheme": "ring" }, "seed": 1 })",
                                       "scenario.json"));
}

Configuration nodes(std::vector<int> counts) {
  Configuration configuration;
  configuration.nodes = std::move(counts);
  return configuration;
}

// A step does not know which of its nodes may be taken back.
TEST(StepDistributionCache, IsSharedByMarketsOfOneInstanceTypeInOnePlace) {
  const Scenario one =
      with_pools(R"({ "catalog": "aws", "region": "us-east-1", "instance": "p3.2xlarge", "nodes": 8 })");
  const Scenario two = with_pools(R"({ "pools": [
    { "catalog": "aws", "region": "us-east-1", "instance": "p3.2xlarge", "nodes": 6, "market": "spot" },
    { "catalog": "aws", "region": "us-east-1", "instance": "p3.2xlarge", "nodes": 2 } ] })");
  StepDistributionCache cache;
  ScenarioSteps alone(one, cache), mixed(two, cache);
  const StepDistribution& whole = alone.distribution(nodes(8));
  const StepDistribution& parts = mixed.distribution(nodes({6, 2}));
  EXPECT_EQ(mixed.distribution(nodes({7, 1})).mean, whole.mean);
  EXPECT_EQ(mixed.distribution(nodes({0, 8})).mean, whole.mean);
  EXPECT_EQ(cache.take_new().size(), 1);
  ASSERT_EQ(parts.pools.size(), 2U);
  EXPECT_DOUBLE_EQ(parts.pools[0].compute.si, 0.75 * whole.pools[0].compute.si);
  EXPECT_DOUBLE_EQ(parts.pools[1].exposed.si, 0.25 * whole.pools[0].exposed.si);
  // Simulated with its own pools, it comes to the same.
  const auto simulated = StepSimulator(two, nodes({6, 2}), mixed.models(nodes({6, 2})), 7).simulate(Bound::central);
  EXPECT_NEAR(simulated.mean / whole.mean, 1, 1e-12);
  for (std::size_t p = 0; p < 2; ++p) {
    EXPECT_NEAR(simulated.pools[p].compute / parts.pools[p].compute, 1, 1e-12);
    EXPECT_NEAR(simulated.pools[p].exposed / parts.pools[p].exposed, 1, 1e-12);
  }
}

TEST(StepDistributionCache, IsNotSharedByOtherZonesOrSizes) {
  const Scenario zones = with_pools(R"({ "pools": [
    { "catalog": "aws", "region": "us-east-1", "zone": "us-east-1a", "instance": "p3.2xlarge", "nodes": 6 },
    { "catalog": "aws", "region": "us-east-1", "zone": "us-east-1b", "instance": "p3.2xlarge", "nodes": 2 } ],
    "links": [ { "between": ["p3.2xlarge us-east-1a on-demand", "p3.2xlarge us-east-1b on-demand"],
                 "bandwidth": "1Gbit/s", "latency": "1ms" } ] })");
  const Scenario sizes = with_pools(R"({ "pools": [
    { "catalog": "aws", "region": "us-east-1", "instance": "p3.2xlarge", "nodes": 6 },
    { "catalog": "aws", "region": "us-east-1", "instance": "p3.8xlarge", "nodes": 2 } ] })");
  for (const Scenario* scenario : {&zones, &sizes}) {
    StepDistributionCache cache;
    ScenarioSteps steps(*scenario, cache);
    const Seconds mean = steps.distribution(nodes({4, 2})).mean;
    EXPECT_NE(mean, steps.distribution(nodes({6, 0})).mean);
    EXPECT_EQ(cache.take_new().size(), 2);
  }
}

TEST(StepDistribution, ReadsBackToTheLastBit) {
  StepDistribution distribution;
  distribution.mean = Seconds{0.1};
  distribution.low = Seconds{1.0 / 3};
  distribution.own_variance = 1e-300;
  distribution.simulated = 12345678901;
  distribution.precise = false;
  distribution.pools = {{Seconds{1}, Seconds{2}, Seconds{3}, Seconds{4}, Seconds{5}, Seconds{6}}};
  distribution.spans = {{3, StepSpan::Kind::exposed, "waits", Seconds{0.1}, Seconds{0.2}}};
  distribution.warnings = {"a", "b"};
  const StepDistribution read = parse_distribution(to_text(distribution));
  EXPECT_EQ(read.mean, distribution.mean);
  EXPECT_EQ(read.low, distribution.low);
  EXPECT_EQ(read.own_variance, distribution.own_variance);
  EXPECT_EQ(read.simulated, distribution.simulated);
  EXPECT_FALSE(read.precise);
  ASSERT_EQ(read.pools.size(), 1U);
  EXPECT_EQ(read.pools[0].device, Seconds{6});
  ASSERT_EQ(read.spans.size(), 1U);
  EXPECT_EQ(read.spans[0].kind, StepSpan::Kind::exposed);
  EXPECT_EQ(read.spans[0].end, Seconds{0.2});
  EXPECT_THAT(read.warnings, ElementsAre("a", "b"));
}

}  // namespace
}  // namespace ganymede::sim
