// Tests which runs share an entry of a StepDistributionCache, and which do not.

#include "sim/steps/step_distribution_cache.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/errors.hpp"
#include "common/json_value.hpp"
#include "common/units.hpp"
#include "sim/scenario/scenario_files.hpp"

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
