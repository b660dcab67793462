// The order of events, and the list of them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/units.hpp"
#include "sim/run/run_record.hpp"
#include "sim/run/run_state.hpp"

namespace ganymede::sim {
namespace {

TEST(SimulationQueues, HandOutEventsByTimeThenInTheOrderOfScheduling) {
  SimulationQueue queue;
  queue.schedule({20, NodeReady{0}});
  queue.schedule({10, NodeReady{1}});
  queue.schedule({20, NodeReady{2}});
  queue.schedule({10, NodeReady{3}});
  std::vector<std::size_t> nodes;
  while (!queue.empty()) nodes.push_back(std::get<NodeReady>(queue.pop().event).node);
  EXPECT_THAT(nodes, testing::ElementsAre(1, 3, 0, 2));
}

TEST(SimulationQueues, DropWhatNeverHappens) {
  SimulationQueue queue;
  queue.schedule({kNever, PolicyReviewDue{}});
  EXPECT_TRUE(queue.empty());
}

TEST(EventLogs, AddUpNodesOfEqualEntries) {
  EventLog log;
  log.append({Seconds{1}, "requested", "a", 2, "", 1});
  log.append({Seconds{1}, "requested", "a", 1, "", 1});
  log.append({Seconds{1}, "requested", "b", 1, "", 1});
  log.append({Seconds{2}, "requested", "b", 1, "", 1});
  ASSERT_EQ(log.events().size(), 3U);
  EXPECT_EQ(log.events()[0].nodes, 3);
  EXPECT_EQ(log.events()[1].nodes, 1);
}

TEST(EventLogs, EndWithALineThatSaysSo) {
  EventLog log;
  const auto append = [&](std::size_t count) {
    for (std::size_t i = 0; i < count; ++i)
      log.append({Seconds{static_cast<double>(log.events().size())}, "checkpoint", "", 0, "", 1});
  };
  append(kMaxListedEvents);
  EXPECT_FALSE(log.truncated());
  append(2);
  EXPECT_TRUE(log.truncated());
  EXPECT_EQ(log.events().size(), kMaxListedEvents + 1);
  EXPECT_EQ(log.events().back().what, "further events are not listed");
}

}  // namespace
}  // namespace ganymede::sim
