// Transitions of nodes and capacity: each test applies an event to a state and checks the new state and the actions.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/units.hpp"
#include "run_literals.hpp"
#include "sim/run/transitions.hpp"

namespace ganymede::sim {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

Series constant_series(double value) { return {{{Seconds{0}, value}}}; }

TEST(RequestAnswers, BootANode) {
  Scenario scenario = literal_scenario(1);
  scenario.provisioning.image_pull.median = Seconds{30};
  RunInTheMiddle run(scenario);
  run.state.now = 5 * kSecond;
  const std::size_t node = run.add_queued();
  const Actions actions = transition(run.context, run.state, RequestAnswered{node});
  EXPECT_EQ(run.node(node).state, Node::State::booting);
  EXPECT_EQ(run.node(node).granted, 5 * kSecond);
  EXPECT_EQ(run.node(node).runs, 95 * kSecond);
  EXPECT_EQ(scheduled<NodeReady>(actions).at, 125 * kSecond);
  EXPECT_EQ(actions.schedule.size(), 1U);
  EXPECT_THAT(actions.log, IsEmpty());
  EXPECT_FALSE(actions.consult_policy);
}

TEST(RequestAnswers, ComeTooLateForARequestThatWasGivenUp) {
  RunInTheMiddle run(literal_scenario(1));
  const std::size_t node = run.add_queued();
  run.state.fleet.remove(node, 0, false);
  EXPECT_THAT(transition(run.context, run.state, RequestAnswered{node}).schedule, IsEmpty());
  EXPECT_EQ(run.node(node).state, Node::State::gone);
}

TEST(RequestAnswers, WaitWhereThereIsNoCapacity) {
  Scenario scenario = literal_scenario(1);
  scenario.pools[0].capacity = constant_series(0);
  RunInTheMiddle run(scenario);
  const std::size_t node = run.add_queued();
  const Actions actions = transition(run.context, run.state, RequestAnswered{node});
  EXPECT_EQ(run.node(node).state, Node::State::waiting);
  EXPECT_THAT(logged(actions), ElementsAre("waiting"));
  EXPECT_THAT(actions.schedule, IsEmpty());
}

TEST(RequestAnswers, SayWhenTheNodeIsTakenBackOrCrashes) {
  Scenario scenario = literal_scenario(1);
  scenario.pools[0].lifetimes = exponential_lifetimes(Seconds{1e4});
  scenario.pools[0].notice = Seconds{1};
  scenario.faults.crash = Seconds{1e4};
  RunInTheMiddle run(scenario);
  RandomStream same = run.state.pools[0].lifetimes;
  const std::size_t node = run.add_queued();
  const Actions actions = transition(run.context, run.state, RequestAnswered{node});
  EXPECT_EQ(scheduled<NoticeGiven>(actions).at, to_nanoseconds(Seconds{1e4 * same.exponential()}) - kSecond);
  EXPECT_EQ(scheduled<NodeCrashed>(actions).at, to_nanoseconds(Seconds{1e4 * same.exponential()}));
}

// The provider knows 120 s ahead that it must take the node back at 100 s.
TEST(RequestAnswers, AnnounceAKnownFallOfCapacity) {
  Scenario scenario = literal_scenario(1);
  scenario.pools[0].capacity = Series{{{Seconds{0}, 1}, {Seconds{100}, 0}}};
  scenario.pools[0].notice = Seconds{120};
  RunInTheMiddle run(scenario);
  const std::size_t node = run.add_queued();
  const Actions granted = transition(run.context, run.state, RequestAnswered{node});
  EXPECT_EQ(scheduled<ReclaimDue>(granted).at, 0);

  const Actions actions = transition(run.context, run.state, ReclaimDue{0});
  EXPECT_TRUE(run.node(node).noticed);
  EXPECT_EQ(run.node(node).leaves, 100 * kSecond);
  EXPECT_EQ(scheduled<NodeReclaimed>(actions).at, 100 * kSecond);
  EXPECT_THAT(logged(actions), ElementsAre("notice"));
  EXPECT_TRUE(actions.consult_policy);
}

TEST(Retries, GrantTheOldestRequestsThatThereAreNodesFor) {
  Scenario scenario = literal_scenario(2);
  scenario.pools[0].capacity = constant_series(1);
  RunInTheMiddle run(scenario);
  const std::size_t first = run.add_waiting(), second = run.add_waiting();
  const Actions actions = transition(run.context, run.state, WaitingRetried{0});
  EXPECT_EQ(run.node(first).state, Node::State::booting);
  EXPECT_EQ(run.node(second).state, Node::State::waiting);
  EXPECT_EQ(std::get<NodeReady>(scheduled<NodeReady>(actions).event).node, first);
}

TEST(CapacityChanges, TakeBackNodesAndScheduleTheNextChange) {
  Scenario scenario = literal_scenario(2);
  scenario.pools[0].capacity = Series{{{Seconds{0}, 2}, {Seconds{100}, 1}, {Seconds{500}, 2}}};
  scenario.pools[0].notice = Seconds{30};
  RunInTheMiddle run(scenario);
  const std::size_t a = run.add_ready(), b = run.add_ready();
  run.state.now = 70 * kSecond;  // the notice of the change at 100 s
  const Actions actions = transition(run.context, run.state, CapacityChanged{0});
  EXPECT_NE(run.node(a).noticed, run.node(b).noticed);
  EXPECT_EQ(scheduled<NodeReclaimed>(actions).at, 100 * kSecond);
  EXPECT_EQ(scheduled<CapacityChanged>(actions).at, 100 * kSecond);
  EXPECT_TRUE(actions.consult_policy);
  ASSERT_EQ(actions.next.size(), 1U);
  EXPECT_TRUE(std::holds_alternative<WaitingRetried>(actions.next[0]));
}

TEST(ReadyNodes, MakeThePolicyDecideOnceAllAreThere) {
  RunInTheMiddle run(literal_scenario(2));
  const std::size_t first = run.add_booting(), second = run.add_booting();
  EXPECT_FALSE(transition(run.context, run.state, NodeReady{first}).consult_policy);
  EXPECT_EQ(run.node(first).state, Node::State::ready);
  EXPECT_TRUE(transition(run.context, run.state, NodeReady{second}).consult_policy);
}

TEST(ReadyNodes, AreLoggedOnceTrainingHasBegun) {
  RunInTheMiddle run(literal_scenario(1));
  const std::size_t node = run.add_booting();
  run.state.has_trained = true;
  EXPECT_THAT(logged(transition(run.context, run.state, NodeReady{node})), ElementsAre("provisioned"));
}

TEST(ReadyNodes, MayHaveBeenLostWhileTheyBooted) {
  RunInTheMiddle run(literal_scenario(1));
  const std::size_t node = run.add_booting();
  run.state.fleet.remove(node, 0, true);
  EXPECT_FALSE(transition(run.context, run.state, NodeReady{node}).consult_policy);
}

// A checkpoint takes a second and must be complete before the node goes at 130 s.
TEST(Notices, ScheduleTheLossAndALastCheckpoint) {
  Scenario scenario = literal_scenario(1);
  add_checkpoints(scenario);
  scenario.pools[0].notice = Seconds{30};
  RunInTheMiddle run(scenario);
  const std::size_t node = run.add_ready();
  run.state.now = 100 * kSecond;
  const Actions actions = transition(run.context, run.state, NoticeGiven{node});
  EXPECT_TRUE(run.node(node).warned);
  EXPECT_EQ(scheduled<NodeReclaimed>(actions).at, 130 * kSecond);
  EXPECT_EQ(scheduled<FinalCheckpointDue>(actions).at, 129 * kSecond - 1);
  EXPECT_TRUE(actions.consult_policy);
}

TEST(Notices, WithoutTimeAreNone) {
  RunInTheMiddle run(literal_scenario(1));
  const std::size_t node = run.add_ready();
  const Actions actions = transition(run.context, run.state, NoticeGiven{node});
  EXPECT_FALSE(run.node(node).warned);
  EXPECT_EQ(scheduled<NodeReclaimed>(actions).at, 0);
  EXPECT_THAT(actions.log, IsEmpty());
  EXPECT_FALSE(actions.consult_policy);
}

}  // namespace
}  // namespace ganymede::sim
