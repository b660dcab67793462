// Policies that choose between spot and on demand: spot-first, deadline, budget. uniform-progress has a file of its
// own.

#include <gmock/gmock.h>

#include "common/units.hpp"
#include "policy_under_test.hpp"

namespace ganymede::policies {
namespace {

using testing::ElementsAre;

/// Pool 0 is on spot, pool 1 on demand; four spot nodes are asked for.
std::vector<PoolView> both_markets() {
  return {pool_of(platforms::Market::spot, 4, 8, 1), pool_of(platforms::Market::on_demand, 0, 8, 3)};
}

/// So many spot nodes are held, the others of four have been waited for.
Observation spot_gives(int nodes, double refused_for_s, double now_s) {
  Observation observation;
  observation.pools = both_markets();
  observation.pools[0].ready = nodes;
  observation.pools[0].waiting = 4 - nodes;
  observation.pools[0].refused_for = Seconds{refused_for_s};
  observation.now = Seconds{now_s};
  return observation;
}

TEST(SpotFirst, WaitsPatiently) {
  PolicyUnderTest policy("spot-first");
  EXPECT_THAT(policy.nodes(spot_gives(0, 300, 300)), ElementsAre(4, 0));
  EXPECT_THAT(policy.nodes(spot_gives(0, 301, 301)), ElementsAre(1, 4)) << "one request stays open";
}

TEST(SpotFirst, TakesOnDemandWhatSpotDoesNotGive) {
  PolicyUnderTest policy("spot-first", {{"patience_s", 10}});
  EXPECT_THAT(policy.nodes(spot_gives(3, 11, 100)), ElementsAre(4, 1));
  EXPECT_THAT(policy.nodes(spot_gives(4, 0, 200)), ElementsAre(4, 0)) << "spot has given all";
  EXPECT_THAT(policy.nodes(spot_gives(3, 5, 300)), ElementsAre(4, 0)) << "waits anew";
}

TEST(SpotFirst, AsksNoPoolForMoreThanItMayHold) {
  // Three nodes on spot and two on demand are asked for, and each pool may have four.
  PolicyUnderTest policy("spot-first", {{"patience_s", 10}});
  Observation observation = spot_gives(4, 11, 100);
  for (PoolView& pool : observation.pools) pool.most = 4;
  observation.pools[0].requested = 3;
  observation.pools[1].requested = 2;
  observation.pools[0].waiting = 1;
  EXPECT_THAT(policy.nodes(observation), ElementsAre(4, 1));
  observation.pools[0].ready = 0;
  observation.now = Seconds{101};
  EXPECT_THAT(policy.nodes(observation), ElementsAre(1, 4));
}

TEST(SpotFirst, TriesSpotAloneAgain) {
  PolicyUnderTest policy("spot-first");
  EXPECT_THAT(policy.nodes(spot_gives(0, 301, 1000)), ElementsAre(1, 4));
  Observation later = spot_gives(0, 0, 1000 + 3600);
  later.pools[0].waiting = 0;
  EXPECT_THAT(policy.nodes(later), ElementsAre(1, 4));
  later.now = Seconds{1000 + 3601};
  EXPECT_THAT(policy.nodes(later), ElementsAre(4, 0));
}

TEST(SpotFirst, TakesTheMarketThatThereIs) {
  Observation observation;
  observation.pools = {pool_of(platforms::Market::on_demand, 4, 8, 3)};
  EXPECT_THAT(PolicyUnderTest("spot-first").nodes(observation), ElementsAre(4));
  observation.pools = {pool_of(platforms::Market::spot, 4, 8, 1)};
  observation.pools[0].waiting = 4;
  observation.pools[0].refused_for = Seconds{1e4};
  EXPECT_THAT(PolicyUnderTest("spot-first").nodes(observation), ElementsAre(4));
}

/// Four on-demand nodes do 4 units an hour without waiting, so n do n. 40 units are left.
Observation on_demand_training() { return training({pool_of(platforms::Market::on_demand, 4, 8, 1)}, 0, 4, 4, 10); }

// n nodes need 40 / n hours, 42 / n with the margin of 5 %.
TEST(Deadline, RentsTheFewestNodesThatMeetIt) {
  const auto nodes_by = [](double hours) {
    Observation observation = on_demand_training();
    observation.deadline = Seconds{hours * kHour};
    return PolicyUnderTest("deadline").nodes(observation);
  };
  EXPECT_THAT(nodes_by(10), ElementsAre(5)) << "42 / 4 = 10.5, 42 / 5 = 8.4";
  EXPECT_THAT(nodes_by(1), ElementsAre(8)) << "no number meets it: all that there may be";
  EXPECT_THAT(nodes_by(20), ElementsAre(4)) << "3 would do, but a restart for one node fewer is not worth it";
  EXPECT_THAT(nodes_by(30), ElementsAre(2)) << "42 / 2 = 21";
  EXPECT_THAT(PolicyUnderTest("deadline").nodes(on_demand_training()), ElementsAre(4)) << "no deadline";
}

TEST(Deadline, MeasuresOnDemandHowLongTheWorkTakes) {
  Observation observation;
  observation.pools = both_markets();
  observation.deadline = Seconds{10 * kHour};
  observation.left = 40;
  EXPECT_THAT(PolicyUnderTest("deadline").nodes(observation), ElementsAre(0, 4));
  observation.left = 0;
  EXPECT_THAT(PolicyUnderTest("deadline").nodes(observation), ElementsAre(4, 0)) << "a blind policy cannot measure";
}

/// Four spot nodes train as in on_demand_training(). A change takes an hour.
Observation spot_training(double deadline_h) {
  Observation observation = training(both_markets(), 0, 4, 4, 10);
  observation.deadline = Seconds{deadline_h * kHour};
  observation.restart = Seconds{0.25 * kHour};
  observation.boot = Seconds{0.75 * kHour};
  return observation;
}

// All 8 nodes would need 42 / 8 = 5.25 h of the 10, and two changes 2 h: 2.75 h are to spare, for what a loss would
// undo and for the time until the next decision. 5 nodes need 8.4 h and the change.
TEST(Deadline, IsOnSpotWhileThereIsTimeToFallBack) {
  const auto nodes_with = [](double since_durable_h, double every_h) {
    Observation observation = spot_training(10);
    observation.since_durable = Seconds{since_durable_h * kHour};
    observation.every = Seconds{every_h * kHour};
    return PolicyUnderTest("deadline").nodes(observation);
  };
  EXPECT_THAT(nodes_with(2.7, 0), ElementsAre(5, 0));
  EXPECT_THAT(nodes_with(2.8, 0), ElementsAre(4, 5)) << "spot goes on until the others are ready";
  EXPECT_THAT(nodes_with(1.7, 1), ElementsAre(5, 0));
  EXPECT_THAT(nodes_with(1.8, 1), ElementsAre(4, 5));
}

TEST(Deadline, GoesBackToSpotWithTimeForTheWayThereAndBack) {
  PolicyUnderTest policy("deadline");
  EXPECT_THAT(policy.nodes(spot_training(7.2)), ElementsAre(4, 7)) << "7.25 h are needed";
  Observation ready = training(both_markets(), 1, 8, 8, 5);
  ready.restart = Seconds{0.25 * kHour};
  ready.boot = Seconds{0.75 * kHour};
  ready.deadline = Seconds{9.2 * kHour};
  EXPECT_THAT(policy.nodes(ready), ElementsAre(0, 8)) << "9.25 h would be";
  ready.deadline = Seconds{9.3 * kHour};
  EXPECT_THAT(policy.nodes(ready), ElementsAre(6, 8))
      << "6 nodes need 7 h and the change; on demand goes on until then";
}

// 40 units take 10 h on the spot nodes that train, and on 4 on-demand nodes 10 h and the change.
TEST(Deadline, KeepsSpotNodesWhereOnlyTheyAreInTime) {
  Observation observation = spot_training(10.5);
  for (PoolView& pool : observation.pools) pool.most = 4;
  EXPECT_THAT(PolicyUnderTest("deadline").nodes(observation), ElementsAre(4, 0));
  observation.deadline = Seconds{11.1 * kHour};
  EXPECT_THAT(PolicyUnderTest("deadline").nodes(observation), ElementsAre(4, 4))
      << "while there is time for the change";
}

// Ten units an hour, and 3 minutes of pauses for each: 40 units take 4 h and 2 h. An evaluation may be under way: 0.1
// h.
TEST(Deadline, CountsPausesAndTheLastCheckpoint) {
  const auto nodes_by = [](double hours) {
    Observation observation = training({pool_of(platforms::Market::on_demand, 4, 8, 1)}, 0, 4, 10, 4);
    observation.pause_s = 180;
    observation.evaluation = Seconds{0.1 * kHour};
    observation.save = Seconds{0.1 * kHour};
    observation.deadline = Seconds{hours * kHour};
    return PolicyUnderTest("deadline", {{"margin", 0}}).nodes(observation)[0];
  };
  EXPECT_EQ(nodes_by(6.21), 4);
  EXPECT_GT(nodes_by(6.19), 4);
}

TEST(Deadline, DoesNotAskSpotForAnHourAfterARefusal) {
  PolicyUnderTest policy("deadline");
  Observation observation = training(both_markets(), 1, 4, 4, 10);
  observation.deadline = Seconds{100 * kHour};
  observation.pools[0].waiting = 4;
  observation.pools[0].refused_for = Seconds{601};  // more than ten minutes
  EXPECT_THAT(policy.nodes(observation), ElementsAre(0, 1)) << "42 / 1 is less than 100, and 1 is at most half of 4";
  observation.pools[0].waiting = 0;
  observation.now = Seconds{kHour - 1};
  EXPECT_THAT(policy.nodes(observation), ElementsAre(0, 1));
  observation.now = Seconds{kHour};
  EXPECT_THAT(policy.nodes(observation), ElementsAre(1, 4)) << "those on demand train until it is there";
}

// The rest costs 40 node-hours at 1 USD, 42 USD with the margin, whatever the number of nodes.
TEST(Budget, RentsTheFastestThatItPaysFor) {
  Observation observation = on_demand_training();
  observation.budget_usd = 50;
  observation.spent_usd = 7;
  EXPECT_THAT(PolicyUnderTest("budget").nodes(observation), ElementsAre(8));
  // A change costs an hour of all nodes: (40 + n) x 1.05 USD, of which even one node's 43.05 are more than the 43 left.
  observation.boot = Seconds{kHour};
  EXPECT_THAT(PolicyUnderTest("budget").nodes(observation), ElementsAre(4));
  observation.spent_usd = 0;  // (40 + 7) x 1.05 = 49.35; for 8 nodes it is 50.4
  EXPECT_THAT(PolicyUnderTest("budget").nodes(observation), ElementsAre(7));
  observation.spent_usd = 20;
  EXPECT_THAT(PolicyUnderTest("budget").nodes(observation), ElementsAre(1)) << "it pays for none";
}

TEST(Budget, AsksForWhatTheScenarioAsksForBeforeItKnowsASpeed) {
  Observation observation;
  observation.pools = both_markets();
  observation.budget_usd = 50;
  EXPECT_THAT(PolicyUnderTest("budget").nodes(observation), ElementsAre(4, 0));
  observation.pools[0].waiting = 4;
  observation.pools[0].refused_for = Seconds{601};
  EXPECT_THAT(PolicyUnderTest("budget").nodes(observation), ElementsAre(0, 4)) << "spot refuses";
}

}  // namespace
}  // namespace ganymede::policies
