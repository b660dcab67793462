// What the trace viewer is promised: spans of a track never overlap, and nothing is lost.

#include "report/timeline.hpp"

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>

namespace ganymede {
namespace {

using namespace ganymede::literals;

TEST(Timeline, OverlappingSpansGetTracksOfTheirOwn) {
  const std::vector<TimelineSpan> spans = {{"ring", 0, "rank 0", "a", 0_us, 10_us, {{"bytes", "8"}}},
                                           {"ring", 0, "rank 0", "b", 5_us, 20_us, {}},
                                           {"ring", 0, "rank 0", "c", 10_us, 12_us, {}},
                                           {"tree", 0, "rank 0", "d", 0_us, 1_us, {}}};
  const auto trace = nlohmann::json::parse(chrome_trace(spans));
  std::map<std::pair<int, int>, double> end;
  std::map<std::string, std::pair<int, int>> track;
  std::set<std::string> names;
  for (const auto& event : trace["traceEvents"]) {
    if (event["ph"] != "X") continue;
    const std::pair<int, int> where = {event["pid"], event["tid"]};
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

TEST(Timeline, TimesAreMicroseconds) {
  const auto trace = nlohmann::json::parse(chrome_trace({{"p", 3, "rank 3", "x", 2_ms, 5_ms, {}}}));
  const auto& span = trace["traceEvents"].back();
  EXPECT_NEAR(span["ts"].get<double>(), 2000, 1e-9);
  EXPECT_NEAR(span["dur"].get<double>(), 3000, 1e-9);
}

}  // namespace
}  // namespace ganymede
