// Runs on recorded capacity. A recording says when nodes were taken back; the notice came before.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "common/errors.hpp"
#include "common/units.hpp"
#include "scenario_files.hpp"
#include "sim/run/run_simulation.hpp"

namespace ganymede::sim {
namespace {

using testing::ElementsAre;
/// The time for which a node was held, from its grant to its end, in seconds.
struct Held {
  double from, to;
  bool operator==(const Held&) const = default;
  friend void PrintTo(const Held& held, std::ostream* out) { *out << held.from << " to " << held.to; }
};

class Recordings : public testing::Test {
 protected:
  /// An hour of training on each node and a checkpoint every ten minutes; the notice is two minutes.
  Json on(const char* capacity, int nodes) const {
    files_.folder().add("c.csv", std::string("time_s,nodes\n") + capacity);
    Json content = ScenarioFiles::with("/platform/nodes", nodes);
    content["workload"]["steps"] = 360'000;
    content["storage"] = {{"checkpoint", "disk"}};
    content["checkpoint"] = {{"every", "10min"}};
    content["platform"]["capacity"] = "c.csv";
    content["platform"]["notice"] = "120s";
    return content;
  }
  Json run(const Json& content) const { return Json::parse(documents::result_text(simulate(files_.load(content)))); }
  std::vector<Held> nodes_of(const Json& content) const {
    const Scenario scenario = files_.load(content);
    StepDistributionCache cache;
    ScenarioSteps times(scenario, cache);
    const RunRecord record = simulate_run(scenario, times);
    std::vector<Held> nodes;
    for (const Node& node : record.nodes)
      if (node.granted != kNever)
        nodes.push_back({to_seconds(node.granted).si, to_seconds(std::min(node.gone, record.end)).si});
    return nodes;
  }
  static std::vector<double> times_of(const Json& run, const char* event) {
    std::vector<double> times;
    for (const auto& row : run["events"])
      if (row["event"] == event) times.push_back(row["at_s"].get<double>());
    return times;
  }
  ScenarioFiles files_;
};

// Training from 90 s on: five cycles of 601 s and 504 s more until the last second before 3,600 s, in which a
// checkpoint is written. The next node is granted at 3,660 s, boots for 90 s and reads half a second; 96 s of training
// and a second of writing are left.
TEST_F(Recordings, ANodeGoesWhenTheRecordingSaysAndItsNoticeComesBefore) {
  const Json result = run(on("0,1\n3600,0\n3660,1\n", 1));
  EXPECT_THAT(times_of(result, "notice"), ElementsAre(3600 - 120));
  EXPECT_THAT(times_of(result, "lost"), ElementsAre(3600));
  EXPECT_NEAR(number(result, "/time/total_s"), 3660 + 90 + 0.5 + (3600 - 5 * 600 - 504) + 1, 1e-6);
  EXPECT_NEAR(number(result, "/pools/0/node_hours") * 3600, 3600 + 187.5, 1e-6);
  EXPECT_NEAR(number(result, "/life/lost_training_s"), 0, 1e-6);
  EXPECT_EQ(result["life"]["checkpoints"], 5 + 1 + 1);
}

// Capacity is one node. It gets its notice at 1,000 s, and the node that is requested in its place waits until it is
// gone. 600 s were trained before the checkpoint at 690 s and 428 s before the last one, so that 2,572 s with four more
// are left.
TEST_F(Recordings, WhoWaitsForANodeUnderNoticeGetsTheRoomThatItLeaves) {
  Json content = on("0,1\n", 1);
  content["faults"]["events"] = {{{"at", "1000s"}, {"kind", "interruption"}}};
  const Json result = run(content);
  EXPECT_THAT(nodes_of(content)[0], (Held{0, 1120}));
  EXPECT_EQ(nodes_of(content)[1].from, 1120);
  EXPECT_NEAR(number(result, "/time/total_s"), 1120 + 90.5 + 2572 + 4 + 1, 1e-6);
}

TEST_F(Recordings, WhoWaitsGetsTheRoomThatACrashLeaves) {
  Json content = on("0,1\n2000,2\n", 2);
  content["faults"]["events"] = {{{"at", "1000s"}, {"kind", "crash"}}};
  const std::vector<Held> nodes = nodes_of(content);
  ASSERT_EQ(nodes.size(), 3U);
  EXPECT_EQ(nodes[0], (Held{0, 1000}));
  EXPECT_EQ(nodes[1].from, 1000);
  EXPECT_EQ(nodes[2].from, 2000);
}

// The first of three nodes gets its notice 100 s ahead, at its grant; the second gets it 120 s ahead.
TEST_F(Recordings, RowsMayBeCloserThanTheNotice) {
  const Json content = on("0,3\n100,2\n150,1\n1000,3\n", 3);
  const Json result = run(content);
  EXPECT_THAT(times_of(result, "notice"), ElementsAre(0, 30));
  EXPECT_THAT(times_of(result, "lost"), ElementsAre(100, 150));
  std::vector<double> ends, starts;
  for (const Held& node : nodes_of(content)) starts.push_back(node.from), ends.push_back(node.to);
  EXPECT_THAT(starts, ElementsAre(0, 0, 0, 1000, 1000));
  const double end = number(result, "/time/total_s");
  EXPECT_THAT(ends, testing::UnorderedElementsAre(100, 150, end, end, end));
}

// Capacity for a second node lasts only a minute, so one node gets its notice at once.
TEST_F(Recordings, ANodeThatComesWithinANoticeIsTakenForAsLongAsItIsThere) {
  const Json content = on("0,1\n1000,2\n1060,1\n2000,2\n", 2);
  const Json result = run(content);
  EXPECT_THAT(times_of(result, "notice"), ElementsAre(1000));
  EXPECT_THAT(times_of(result, "lost"), ElementsAre(1060));
  EXPECT_EQ(nodes_of(content).size(), 3U);
}

// Nine other nodes are available, but they would be lost at the same time, so none of them is rented.
TEST_F(Recordings, ANodeUnderNoticeIsNotReplacedByOneThatGoesWithIt) {
  const std::vector<Held> nodes = nodes_of(on("0,10\n1000,0\n2000,10\n", 1));
  ASSERT_EQ(nodes.size(), 2U);
  EXPECT_EQ(nodes[0], (Held{0, 1000}));
  EXPECT_EQ(nodes[1].from, 2000);
}

TEST_F(Recordings, WithoutNoticeNodesGoAtOnce) {
  Json content = on("0,2\n1000,0\n1060,2\n", 2);
  content["platform"]["notice"] = "0s";
  const Json result = run(content);
  EXPECT_THAT(times_of(result, "notice"), ElementsAre());
  EXPECT_THAT(times_of(result, "lost"), ElementsAre(1000, 1000));
  EXPECT_THAT(nodes_of(content)[1], (Held{0, 1000}));
  EXPECT_EQ(nodes_of(content)[2].from, 1060);
}

// A row's time that is no whole number of nanoseconds: the row takes effect once, with its own value.
TEST_F(Recordings, RowsMayLieBetweenNanoseconds) {
  const std::vector<Held> nodes = nodes_of(on("0,1\n1000.0000000003,0\n1100.0000000003,1\n", 1));
  ASSERT_EQ(nodes.size(), 2U);
  EXPECT_EQ(nodes[0], (Held{0, 1000}));
  EXPECT_EQ(nodes[1].from, 1100);
}

template <class T>
T any_of(std::initializer_list<T> values) {
  return *rc::gen::elementOf(std::vector<T>(values));
}

std::string any_seconds(int low, int high) { return std::to_string(*rc::gen::inRange(low, high)) + "s"; }

/// A recording of at most five nodes. The last row has as many nodes as are requested, so that the run ends.
std::string any_capacity(int nodes) {
  std::string rows;
  double at = *rc::gen::inRange(0, 100);
  for (int i = *rc::gen::inRange(0, 30); i > 0; --i) {
    rows += fmt::format("{},{}\n", at, *rc::gen::inRange(0, 6));
    at += *rc::gen::inRange(1, any_of({50, 500})) / 3.0;
  }
  return rows + fmt::format("{},{}\n", at, nodes);
}

Json any_run(const ScenarioFiles& files) {
  Json content = ScenarioFiles::basic();
  content["seed"] = *rc::gen::inRange(0, 1000);
  content["workload"]["steps"] = *rc::gen::inRange(1, 300'000);
  Json& platform = content["platform"];
  platform["nodes"] = *rc::gen::inRange(1, 5);
  platform["max_nodes"] = 5;
  files.folder().add("c.csv", "time_s,nodes\n" + any_capacity(platform["nodes"].get<int>()));
  platform["capacity"] = "c.csv";
  platform["notice"] = any_seconds(0, 300);
  if (*rc::gen::inRange(0, 3) == 0)
    platform["lifetimes"] = {{"mean", any_seconds(1000, 20'000)}, {"back_after", any_seconds(0, 500)}};
  content["storage"] = {{"checkpoint", "disk"}};
  content["checkpoint"] = {{"every", "60s"}, {"on_notice", *rc::gen::arbitrary<bool>()}};
  content["provisioning"] = {{"boot", any_seconds(0, 100)}, {"queue", {{"median", "30s"}, {"spread", 0.5}}}};
  content["faults"]["events"] = Json::array();
  for (int i = *rc::gen::inRange(0, 4); i > 0; --i)
    content["faults"]["events"].push_back({{"at", any_seconds(0, 3'000)},
                                           {"kind", any_of({"crash", "interruption"})},
                                           {"nodes", *rc::gen::inRange(1, 3)}});
  content["policy"] = {{"name", any_of({"fixed", "resource-aware", "predictive", "spot-first", "budget", "deadline"})}};
  content["deadline"] = any_seconds(600, 20'000);
  return content;
}

RC_GTEST_PROP(RecordingsProperty, NoMoreIsHeldThanTheRecordingHad, ()) {
  static const ScenarioFiles kFiles;
  const Scenario scenario = kFiles.load(any_run(kFiles));
  const Series& capacity = *scenario.pools[0].capacity;
  StepDistributionCache cache;
  ScenarioSteps times(scenario, cache);
  const RunRecord record = simulate_run(scenario, times);
  std::vector<Nanoseconds> moments;
  for (const Series::Row& row : capacity.rows) moments.push_back(to_nanoseconds(row.at));
  for (const Node& node : record.nodes)
    if (node.granted != kNever) moments.push_back(node.granted);
  // It suffices to check grants, at which more nodes are held, and rows, at which fewer may be held.
  for (const Nanoseconds moment : moments) {
    int held = 0;
    for (const Node& node : record.nodes)
      held += node.pool == 0 && node.granted <= moment && moment < std::min(node.gone, record.end) ? 1 : 0;
    double room = 0;
    for (const Series::Row& row : capacity.rows)
      if (to_nanoseconds(row.at) <= moment) room = row.value;
    RC_ASSERT(held <= room);
  }
  RC_ASSERT(to_seconds(held_time(record, 0)).si <= integral(capacity, Seconds{0}, to_seconds(record.end)) + 1e-6);
}

}  // namespace
}  // namespace ganymede::sim
