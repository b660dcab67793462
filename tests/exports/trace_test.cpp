// The promises to the trace viewer: spans of a track never overlap, and no span is lost.

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "common/json_value.hpp"
#include "exports/perfetto.hpp"
#include "support/made_up_run.hpp"

namespace ganymede::exports {
namespace {

using namespace ganymede::literals;

TEST(ChromeTrace, OverlappingSpansGetTracksOfTheirOwn) {
  const std::vector<TimelineSpan> spans = {{"ring", 0, "rank 0", "a", 0_us, 10_us, {{"bytes", "8"}}},
                                           {"ring", 0, "rank 0", "b", 5_us, 20_us, {}},
                                           {"ring", 0, "rank 0", "c", 10_us, 12_us, {}},
                                           {"tree", 0, "rank 0", "d", 0_us, 1_us, {}}};
  const auto trace = Json::parse(chrome_trace(spans));
  std::map<std::pair<int, int>, double> end;
  std::map<std::string, std::pair<int, int>> track;
  std::set<std::string> names;
  for (const auto& event : trace["traceEvents"]) {
    if (event["ph"] != "X") continue;
    const std::pair<int, int> where = {event["pid"].get<int>(), event["tid"].get<int>()};
    EXPECT_GE(event["ts"].get<double>(), end[where]);
    end[where] = event["ts"].get<double>() + event["dur"].get<double>();
    track[event["name"]] = where;
    names.insert(event["name"].get<std::string>());
  }
  EXPECT_EQ(names, (std::set<std::string>{"a", "b", "c", "d"}));
  EXPECT_EQ(track["a"], track["c"]);  // one ends as the other starts
  EXPECT_NE(track["a"], track["b"]);
  EXPECT_NE(track["a"].first, track["d"].first);
}

TEST(ChromeTrace, TimesAreMicroseconds) {
  const auto trace = Json::parse(chrome_trace({{"p", 3, "rank 3", "x", 2_ms, 5_ms, {}}}));
  const auto& span = trace["traceEvents"].back();
  EXPECT_NEAR(span["ts"].get<double>(), 2000, 1e-9);
  EXPECT_NEAR(span["dur"].get<double>(), 3000, 1e-9);
}

TEST(ChromeTrace, WithoutLengthIsAnInstant) {
  const auto trace = Json::parse(chrome_trace(
      {{"p", 0, "events", "lost", 2_ms, 2_ms, {{"nodes", "1"}}}, {"p", 0, "events", "crashed", 2_ms, 2_ms, {}}}));
  int instants = 0;
  for (const auto& event : trace["traceEvents"]) {
    if (event["ph"] == "M") continue;
    EXPECT_EQ(event["ph"], "i");
    EXPECT_EQ(event["s"], "t");
    EXPECT_FALSE(event.contains("dur"));
    ++instants;
  }
  EXPECT_EQ(instants, 2);
}

TEST(RunTrace, HasTheClusterAndTheStepsWhereTrainingBegins) {
  auto run = run_with({event(0, "requested", 1), event(4, "ready"), event(9, "finished")}, 9);
  run.spans = {{"forward", "all-reduce"}, {{0, 0, 0, 0_s, 500_ms}, {0, 2, 1, 250_ms, 500_ms}, {1, 0, 0, 0_s, 750_ms}}};
  const auto trace = Json::parse(run_trace(run));
  std::map<std::string, std::set<int>> processes;
  std::map<int, std::string> names;
  for (const auto& one : trace["traceEvents"])
    if (one["name"] == "process_name") names[one["pid"].get<int>()] = one["args"]["name"].get<std::string>();
  std::map<std::string, std::pair<double, double>> spans;
  for (const auto& one : trace["traceEvents"])
    if (one["ph"] == "X")
      spans[names[one["pid"].get<int>()] + " " + one["name"].get<std::string>()] = {one["ts"].get<double>(),
                                                                                    one["dur"].get<double>()};
  EXPECT_EQ(spans.at("cluster 1 held"), (std::pair{4e6, 5e6}));
  EXPECT_EQ(spans.at("worker 0 forward"), (std::pair{4e6, 0.5e6}));
  EXPECT_EQ(spans.at("worker 0 all-reduce"), (std::pair{4.25e6, 0.5e6}));
  EXPECT_EQ(spans.at("worker 1 forward"), (std::pair{4e6, 0.75e6}));
}

}  // namespace
}  // namespace ganymede::exports
