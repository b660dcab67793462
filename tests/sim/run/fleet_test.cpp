// Tests the nodes of a run with single calls.

#include "sim/run/fleet.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ganymede::sim {
namespace {

using testing::ElementsAre;

TEST(Fleets, FollowANodeFromRequestToRelease) {
  Fleet fleet(2);
  const std::size_t node = fleet.add(1, 5);
  EXPECT_EQ(fleet[node].state, Node::State::queued);
  EXPECT_EQ(fleet.on_the_way(), 1);
  EXPECT_EQ(fleet.count(1).queued, 1);
  EXPECT_EQ(fleet.count(0).queued, 0);

  fleet.grant(node, 10, 90);
  EXPECT_TRUE(fleet[node].held());
  EXPECT_EQ(fleet[node].runs, 100);
  EXPECT_EQ(fleet.on_the_way(), 1);
  EXPECT_EQ(fleet.fresh(1), 1);

  fleet.make_ready(node, 100);
  EXPECT_EQ(fleet.on_the_way(), 0);
  EXPECT_EQ(fleet.count(1).ready, 1);

  fleet.set_member(node, true);
  EXPECT_THAT(fleet.members(), ElementsAre(0, 1));
  EXPECT_EQ(fleet.fresh(1), 0);

  fleet.remove(node, 200, false);
  EXPECT_EQ(fleet[node].gone, 200);
  EXPECT_THAT(fleet.members(), ElementsAre(0, 0));
  EXPECT_TRUE(fleet.alive().empty());
  EXPECT_EQ(fleet.count(1).lost, 0);
  EXPECT_EQ(fleet.size(), 1U);
}

TEST(Fleets, AWaitingNodeIsNotOnItsWay) {
  Fleet fleet(1);
  const std::size_t first = fleet.add(0, 7), second = fleet.add(0, 9);
  fleet.wait(first);
  fleet.wait(second);
  EXPECT_EQ(fleet.on_the_way(), 0);
  EXPECT_EQ(fleet.count(0).waiting, 2);
  EXPECT_EQ(fleet.count(0).waiting_since, 7);
  fleet.grant(first, 20, 0);
  EXPECT_EQ(fleet.on_the_way(), 1);
  EXPECT_EQ(fleet.count(0).waiting_since, 9);
}

TEST(Fleets, ARequestThatIsGivenUpWasNeverHeld) {
  Fleet fleet(1);
  const std::size_t node = fleet.add(0, 0);
  fleet.remove(node, 30, false);
  EXPECT_EQ(fleet[node].granted, kNever);
  EXPECT_EQ(fleet[node].gone, kNever);
  EXPECT_EQ(fleet.on_the_way(), 0);
}

TEST(Fleets, NodesUnderNoticeAreCountedApart) {
  Fleet fleet(1);
  const std::size_t stays = fleet.add(0, 0), goes = fleet.add(0, 0);
  for (const std::size_t node : {stays, goes}) {
    fleet.grant(node, 0, 0);
    fleet.make_ready(node, 0);
    fleet.set_member(node, true);
  }
  fleet.notice(goes, 120, true);
  const PoolCount count = fleet.count(0);
  EXPECT_EQ(count.ready, 1);
  EXPECT_EQ(count.noticed, 1);
  EXPECT_EQ(count.members, 1);
  EXPECT_THAT(fleet.members(), ElementsAre(2));  // a node with notice trains until it is gone
  fleet.remove(goes, 120, true);
  EXPECT_TRUE(fleet[goes].interrupted);
  EXPECT_EQ(fleet.count(0).lost, 1);
}

TEST(Fleets, ACrashIsNoInterruption) {
  Fleet fleet(1);
  const std::size_t node = fleet.add(0, 0);
  fleet.grant(node, 0, 0);
  fleet.remove(node, 50, true);
  EXPECT_FALSE(fleet[node].interrupted);
  EXPECT_EQ(fleet.count(0).lost, 1);
  EXPECT_EQ(fleet.fresh(0), 0);
}

}  // namespace
}  // namespace ganymede::sim
