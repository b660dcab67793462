// Policies that change the number of nodes of the first pool: resource-aware, predictive, kubernetes-autoscaler,
// q-learning; and fixed, which does not.

#include <gmock/gmock.h>

#include "common/units.hpp"
#include "policies/q_learning.hpp"
#include "policy_under_test.hpp"

namespace ganymede::policies {
namespace {

using testing::ElementsAre;

/// So many of at most 16 on-demand nodes train, for many hours to come.
Observation nodes_training(int nodes) {
  return training({pool_of(platforms::Market::on_demand, 4, 16, 10)}, 0, nodes, nodes, 100);
}
/// The same, with a useful share of the GPUs' time that is not 1.
Observation with_useful(int nodes, double share) {
  Observation observation = nodes_training(nodes);
  observation.exposed = 1 - share;
  return observation;
}

TEST(Fixed, AsksForWhatTheScenarioAsksForWhateverIsThere) {
  PolicyUnderTest fixed("fixed");
  Observation observation = training(
      {pool_of(platforms::Market::spot, 2, 8, 1), pool_of(platforms::Market::on_demand, 1, 8, 3)}, 0, 1, 5, 10);
  observation.pools[0].lost = 1;
  const Decision decision = fixed.decide(observation);
  EXPECT_THAT(decision.nodes, ElementsAre(2, 1));
  EXPECT_FALSE(decision.elastic);
}

TEST(ResourceAware, HalvesBelowLowAndDoublesAboveHigh) {
  EXPECT_THAT(PolicyUnderTest("resource-aware").nodes(with_useful(4, 0.54)), ElementsAre(2));
  EXPECT_THAT(PolicyUnderTest("resource-aware").nodes(with_useful(4, 0.56)), ElementsAre(4));
  EXPECT_THAT(PolicyUnderTest("resource-aware").nodes(with_useful(4, 0.84)), ElementsAre(4));
  EXPECT_THAT(PolicyUnderTest("resource-aware").nodes(with_useful(4, 0.86)), ElementsAre(8));
  EXPECT_THAT(PolicyUnderTest("resource-aware").nodes(with_useful(12, 0.86)), ElementsAre(16)) << "the pool has 16";
  EXPECT_THAT(PolicyUnderTest("resource-aware").nodes(with_useful(1, 0.1)), ElementsAre(1));
  EXPECT_THAT(PolicyUnderTest("resource-aware", {{"low", 0.7}}).nodes(with_useful(4, 0.6)), ElementsAre(2));
}

TEST(ResourceAware, ChangesAgainOnlyAfterItsCooldown) {
  PolicyUnderTest policy("resource-aware");
  Observation four = with_useful(4, 0.5), two = with_useful(2, 0.5);
  four.now = Seconds{1000};
  EXPECT_THAT(policy.nodes(four), ElementsAre(2));
  two.now = Seconds{1000 + 899};
  EXPECT_THAT(policy.nodes(two), ElementsAre(2));
  two.now = Seconds{1000 + 900};
  EXPECT_THAT(policy.nodes(two), ElementsAre(1));
}

// A change costs restart and boot, here 1 h; it is made with 10 h or more to go.
TEST(ResourceAware, ChangesNothingShortlyBeforeTheEnd) {
  Observation observation = with_useful(4, 0.5);
  observation.restart = Seconds{0.4 * kHour};
  observation.boot = Seconds{0.6 * kHour};
  observation.left = observation.rate * 9.9 * kHour;
  EXPECT_THAT(PolicyUnderTest("resource-aware").nodes(observation), ElementsAre(4));
  observation.left = observation.rate * 10.1 * kHour;
  EXPECT_THAT(PolicyUnderTest("resource-aware").nodes(observation), ElementsAre(2));
}

TEST(ResourceAware, ComesBackToANumberThatWasTooManyOnlyWhenStepsHaveChanged) {
  PolicyUnderTest policy("resource-aware", {{"cooldown_s", 0}});
  EXPECT_THAT(policy.nodes(with_useful(4, 0.5)), ElementsAre(2));
  Observation two = with_useful(2, 0.9);
  EXPECT_THAT(policy.nodes(two), ElementsAre(2));
  two.step_s = 1.14;  // by less than 15 %
  EXPECT_THAT(policy.nodes(two), ElementsAre(2));
  two.step_s = 1.16;
  EXPECT_THAT(policy.nodes(two), ElementsAre(4));
}

// 1.5 x 0.5 = 6/8 of the vCPUs; 1.5 x 0.3 = 0.45 of the memory, which is 4/8 in whole eighths.
TEST(ResourceAware, ReservesHalfAsMuchAgainAsIsUsed) {
  PolicyUnderTest policy("resource-aware");
  Observation observation = with_useful(4, 0.7);
  observation.cpu = 0.5;
  observation.host_memory = 0.3;
  Decision decision = policy.decide(observation);
  EXPECT_EQ(decision.cpus, 0.75);
  EXPECT_EQ(decision.memory, 0.5);
  // Nothing is known while nodes boot: the last reservation stays.
  Observation booting = observation;
  booting.cpu = booting.host_memory = 0;
  booting.pools[0].starting = 1;
  decision = policy.decide(booting);
  EXPECT_EQ(decision.cpus, 0.75);
  EXPECT_EQ(decision.memory, 0.5);
  observation.input_stall = 0.03;  // more than 2 %: too few vCPUs
  EXPECT_EQ(policy.decide(observation).cpus, 1);
  observation.cpu = 0.01;
  observation.input_stall = 0;
  EXPECT_EQ(policy.decide(observation).cpus, 0.125) << "at least an eighth";
}

// Four nodes do 4 units an hour without waiting, so n nodes do n. 16 h x 4 = 64 units are left. An hour with n nodes
// costs 10 n + 5 USD, so the rest costs 64 / n x (10 n + 5) = 640 + 320 / n: 680 with 8 nodes, 720 with 4.
TEST(Predictive, TakesTheCheapestRest) {
  Observation observation = training({pool_of(platforms::Market::on_demand, 4, 8, 10)}, 0, 4, 4, 16);
  EXPECT_THAT(PolicyUnderTest("predictive").nodes(observation), ElementsAre(8));
  // 680 is 94.4 % of 720. With 4 USD an hour waited it is 672 of 704, 95.5 %: not enough for a change.
  EXPECT_THAT(PolicyUnderTest("predictive", {{"usd_per_hour_waited", 4}}).nodes(observation), ElementsAre(4));
  // A boot of 1 h is waited for with 8 nodes: 9 h x 85 USD = 765.
  observation.boot = Seconds{kHour};
  EXPECT_THAT(PolicyUnderTest("predictive").nodes(observation), ElementsAre(4));
}

// Three quarters of a step of 4 GPUs are communication: c = 0.75 / (0.25 x 3) = 1, and n GPUs are as fast as one.
TEST(Predictive, TakesOneNodeWhereMoreAreNotFaster) {
  Observation observation = training({pool_of(platforms::Market::on_demand, 4, 8, 10)}, 0, 4, 4, 16);
  observation.exposed = 0.75;
  EXPECT_THAT(PolicyUnderTest("predictive").nodes(observation), ElementsAre(1));
  observation.pools[0].waiting = 1;
  EXPECT_THAT(PolicyUnderTest("predictive").nodes(observation), ElementsAre(5))
      << "held and awaited, until they are here";
}

// 4 x 0.9 / 0.8 = 4.5, which is 5 in whole nodes; 0.87 is within 10 % of 0.8.
TEST(KubernetesAutoscaler, SteersForItsTarget) {
  Observation observation = nodes_training(4);
  observation.gpu_busy = 0.9;
  EXPECT_THAT(PolicyUnderTest("kubernetes-autoscaler").nodes(observation), ElementsAre(5));
  EXPECT_THAT(PolicyUnderTest("kubernetes-autoscaler", {{"target", 0.3}}).nodes(observation), ElementsAre(12));
  EXPECT_THAT(PolicyUnderTest("kubernetes-autoscaler", {{"target", 0.1}}).nodes(observation), ElementsAre(16))
      << "36 nodes are more than the pool has";
  observation.gpu_busy = 0.87;
  EXPECT_THAT(PolicyUnderTest("kubernetes-autoscaler").nodes(observation), ElementsAre(4));
}

// 4 x 0.4 / 0.8 = 2, ten minutes after use was first that low.
TEST(KubernetesAutoscaler, LetsNodesGoAfterADelay) {
  PolicyUnderTest policy("kubernetes-autoscaler");
  Observation observation = nodes_training(4);
  const auto at = [&](double now_s, double busy) {
    observation.now = Seconds{now_s};
    observation.gpu_busy = busy;
    return policy.nodes(observation);
  };
  EXPECT_THAT(at(100, 0.4), ElementsAre(4));
  EXPECT_THAT(at(699, 0.4), ElementsAre(4));
  EXPECT_THAT(at(700, 0.4), ElementsAre(2));
  EXPECT_THAT(at(1000, 0.4), ElementsAre(4)) << "the delay begins anew";
  EXPECT_THAT(at(1300, 0.8), ElementsAre(4));
  EXPECT_THAT(at(1700, 0.4), ElementsAre(4)) << "use was high in between";
}

// 0.9 is in the last fifth; two nodes are one doubling of one.
TEST(QLearning, NamesItsStates) {
  Observation observation = training({pool_of(platforms::Market::on_demand, 2, 4, 1)}, 0, 2, 2, 100);
  observation.exposed = 0.1;
  observation.restart = Seconds{kHour};
  EXPECT_EQ(q_state(observation), "useful4/nodes2^1/left2") << "100 restarts are left";
  observation.pools[0].most = 2;
  observation.exposed = 0.75;
  observation.left = observation.rate * 29 * kHour;
  EXPECT_EQ(q_state(observation), "useful1/nodes2^1max/left1");
  observation.left = observation.rate * 2.9 * kHour;
  EXPECT_EQ(q_state(observation), "useful1/nodes2^1max/left0");
}

TEST(QLearning, TakesTheActionOfTheHighestValue) {
  const Observation observation = training({pool_of(platforms::Market::on_demand, 2, 16, 1)}, 0, 2, 2, 100);
  const std::string state = "useful4/nodes2^1/left2";  // the useful share is 1
  const auto nodes_by = [&](const std::vector<double>& values) {
    PolicyUnderTest policy("q-learning");
    policy.table[state] = values;
    return policy.nodes(observation);
  };
  EXPECT_THAT(nodes_by({-1, -2, -3}), ElementsAre(1));
  EXPECT_THAT(nodes_by({-3, -2, -1}), ElementsAre(4));
  EXPECT_THAT(nodes_by({-1, -1, -1}), ElementsAre(2)) << "no value is higher than that of keeping them";
  EXPECT_THAT(PolicyUnderTest("q-learning").nodes(observation), ElementsAre(2)) << "not in the table";
}

TEST(QLearning, ExploresAtRandom) {
  PolicyUnderTest policy("q-learning", {{"explore", 1}});
  const Observation observation = training({pool_of(platforms::Market::on_demand, 2, 16, 1)}, 0, 2, 2, 100);
  std::map<int, int> times;
  for (int i = 0; i < 300; ++i) ++times[policy.nodes(observation)[0]];
  ASSERT_EQ(times.size(), 3U);  // 1, 2 and 4 nodes, each with a chance of 1/3: 100 +- 4 x 8.2
  for (const int nodes : {1, 2, 4}) EXPECT_NEAR(times[nodes], 100, 33) << nodes;
}

}  // namespace
}  // namespace ganymede::policies
