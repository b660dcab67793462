// The differences between two documents: values worked by hand, each kind of input, limits, and unlike documents.

#include "report/differences.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <sstream>

#include "common/errors.hpp"
#include "common/json_value.hpp"
#include "report/results.hpp"
#include "support/errors.hpp"

namespace ganymede::report {
namespace {
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

/// A result that holds its scenario: 2 nodes, a trace, one price.
Json a_whole_result() {
  Json result = a_result();
  result["provenance"]["scenario"] = Json::parse(R"({ "workload": { "trace": "old/trace.json", "steps": 1000 },
    "platform": { "nodes": 2, "allowed_regions": ["a", "b"] } })");
  result["provenance"]["files"] = {{"/workload/trace", "aaaa"}};
  result["cost"]["items"] = Json::parse(R"([{ "item": "instance-hours", "pool": "p3", "quantity": 2, "unit": "h",
    "unit_price_usd": "3.06", "usd": "6.12" }])");
  return result;
}

documents::Difference difference(const Json& before, const Json& after, const std::vector<std::string>& limits = {}) {
  return differences_of(document_of(before, "a.json"), document_of(after, "b.json"), read_growth_limits(limits));
}

Json compared(const Json& before, const Json& after, const std::vector<std::string>& limits = {}) {
  return documents::difference_json(difference(before, after, limits));
}

std::map<std::string, Json> by_name(const Json& quantities) {
  std::map<std::string, Json> all;
  for (const Json& row : quantities) all[row["what"]] = row;
  return all;
}

TEST(Differences, OfEqualDocumentsAreNone) {
  const Json same = compared(a_whole_result(), a_whole_result(), {"+0%"});
  EXPECT_TRUE(same["inputs"].empty());
  EXPECT_TRUE(same["held"].get<bool>());
  for (const Json& row : same["quantities"])
    if (!row["change"].is_null()) {
      EXPECT_EQ(row["change"], 0.0) << row;
    }
}

// Sums of other lengths differ in their last digits, which is no change.
TEST(Differences, RoundingIsNoChange) {
  Json after = a_whole_result();
  after["time"]["total_s"] = 3600 * (1 + 1e-8);
  EXPECT_THAT(differences_text(difference(a_whole_result(), after)), AllOf(HasSubstr("none"), Not(HasSubstr("+"))));
}

// a_result(): 3600 s in 3500 .. 3700, 7.35 USD in 7 .. 8, 1.25 kg, GPUs busy 0.9.
TEST(Differences, AreComputedAndComparedWithTheStatedError) {
  Json after = a_whole_result();
  after["time"].update({{"total_s", 3960}, {"interval_s", {3650, 4100}}});
  after["cost"].update({{"total_usd", "14.70"}, {"interval_usd", {"14.00", "15.00"}}});
  after["utilization"]["gpu_busy"] = 0.75;
  const Json diff = compared(a_whole_result(), after);
  auto rows = by_name(diff["quantities"]);
  EXPECT_DOUBLE_EQ(rows["time"]["change"].get<double>(), 3960 - 3600);
  EXPECT_NEAR(rows["time"]["relative"].get<double>(), 360.0 / 3600, 1e-12);
  EXPECT_TRUE(rows["time"]["within_error"].get<bool>());  // 3650 lies below 3700
  EXPECT_DOUBLE_EQ(rows["cost"]["relative"].get<double>(), 1);
  EXPECT_FALSE(rows["cost"]["within_error"].get<bool>());  // 14 lies above 8
  EXPECT_DOUBLE_EQ(rows["GPU busy"]["change"].get<double>(), 0.75 - 0.9);
  EXPECT_TRUE(rows["carbon"]["within_error"].is_null());  // no intervals
  EXPECT_THAT(differences_text(difference(a_whole_result(), after)),
              AllOf(HasSubstr("+10.0 %"), HasSubstr("-15.0 points"), HasSubstr("within")));
}

TEST(Differences, NameEachInputByItsPointer) {
  Json after = a_whole_result();
  Json& scenario = after["provenance"]["scenario"];
  scenario["platform"]["nodes"] = 4;
  scenario["platform"]["market"] = "spot";
  scenario["platform"]["allowed_regions"] = {"a"};
  scenario["workload"]["trace"] = "moved/trace.json";  // the same content, so no difference
  after["cost"]["items"][0]["unit_price_usd"] = "2.50";
  after["provenance"]["tool"] = "ganymede 0.0.1";
  const Json inputs = compared(a_whole_result(), after)["inputs"];
  std::map<std::string, Json> found;
  for (const Json& input : inputs) found[input["pointer"]] = input;
  ASSERT_EQ(found.size(), 5U) << inputs;
  EXPECT_EQ(found["/platform/nodes"]["before"], 2);
  EXPECT_EQ(found["/platform/nodes"]["after"], 4);
  EXPECT_TRUE(found["/platform/market"]["before"].is_null());
  EXPECT_EQ(found["/platform/allowed_regions"]["after"], Json({"a"}));
  EXPECT_EQ(found["/cost/items/0/unit_price_usd"]["kind"], "price");
  EXPECT_EQ(found["/cost/items/0/unit_price_usd"]["after"], "2.50");
  EXPECT_EQ(found["/provenance/tool"]["kind"], "program");
}

// Where a row takes two lines, what changed is on the first.
TEST(Differences, TheChangeStandsOnTheFirstLineOfARow) {
  Json before = a_whole_result(), after = a_whole_result();
  before["energy"] = {{"kwh", 0.01663},
                      {"kwh_interval", {0.01648, 0.01693}},
                      {"kg_co2e", 0.006912},
                      {"kg_co2e_interval", {0.006852, 0.007039}}};
  after["energy"] = {{"kwh", 0.04621},
                     {"kwh_interval", {0.04608, 0.04647}},
                     {"kg_co2e", 0.01921},
                     {"kg_co2e_interval", {0.01916, 0.01932}}};
  for (const std::size_t width : {60U, 80U, 100U}) {
    std::istringstream lines(differences_text(difference(before, after), width));
    std::string carbon;
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with("carbon")) carbon = line;
      if (line.find("b.json") == std::string::npos) {
        EXPECT_LE(line.size(), width) << line;
      }
    }
    // 0.01921 - 0.006912 is 1.779 times 0.006912.
    EXPECT_THAT(carbon, AllOf(HasSubstr("+0.0123 kg CO2e"), HasSubstr("+177.9 %"))) << width;
    if (width >= 80) {
      EXPECT_THAT(carbon, AllOf(HasSubstr("0.006912 kg CO2e"), HasSubstr("0.01921 kg CO2e"), HasSubstr("beyond")));
    }
  }
}

TEST(Differences, AFileWithAnotherContentIsNamed) {
  Json after = a_whole_result();
  after["provenance"]["files"]["/workload/trace"] = "bbbb";
  const Json inputs = compared(a_whole_result(), after)["inputs"];
  ASSERT_EQ(inputs.size(), 1U);
  EXPECT_EQ(inputs[0]["kind"], "file");
  EXPECT_EQ(inputs[0]["name"], "old/trace.json");
  EXPECT_EQ(inputs[0]["after"], "bbbb");
}

// Earlier programs wrote no scenario into results; then what a result says of its inputs is compared.
TEST(Differences, ADocumentWithoutItsInputsSaysSo) {
  Json after = a_result();
  after["launch"]["pools"][0]["nodes"] = 3;
  const Json diff = compared(a_result(), after);
  EXPECT_FALSE(diff["inputs_recorded"].get<bool>());
  ASSERT_EQ(diff["inputs"].size(), 1U);
  EXPECT_EQ(diff["inputs"][0]["pointer"], "/launch/pools/0/nodes");
  EXPECT_THAT(differences_text(difference(a_result(), after)), HasSubstr("does not hold its inputs in full"));
}

TEST(Differences, SeveralSeedsAreComparedByTheirMedians) {
  Json before = a_whole_result(), after = a_whole_result();
  const auto seeds = [](double time_s, double usd) {
    const auto spread = [](double median) { return Json{{"median", median}, {"interval", {median - 1, median + 1}}}; };
    return Json{{"first", 1},        {"count", 20}, {"finished", 20}, {"met", 20}, {"time_s", spread(time_s)},
                {"usd", spread(usd)}};
  };
  before["seeds"] = seeds(1000, 10);
  after["seeds"] = seeds(1500, 10);
  const Json diff = compared(before, after, {"time=+50%"});
  EXPECT_TRUE(diff["over_seeds"].get<bool>());
  EXPECT_TRUE(diff["held"].get<bool>());  // exactly 50 %
  EXPECT_FALSE(compared(before, after, {"time=+49%"})["held"].get<bool>());
  EXPECT_TRUE(compared(before, after, {"cost=+0%"})["held"].get<bool>());
}

TEST(Differences, OfPlansAreOfTheChosenCandidates) {
  Json before = a_plan(), after = a_plan();
  before["simulated"][0]["price"]["usd_per_hour"] = "1.00";
  after["simulated"][0]["price"]["usd_per_hour"] = "1.20";
  after["chosen"]["usd"]["median"] = 25.0;  // 12.5 before
  const Json diff = compared(before, after, {"cost=+99%"});
  EXPECT_DOUBLE_EQ(by_name(diff["quantities"])["cost"]["relative"].get<double>(), 1);
  EXPECT_FALSE(diff["held"].get<bool>());
  ASSERT_EQ(diff["inputs"].size(), 1U);
  EXPECT_EQ(diff["inputs"][0]["pointer"], "/simulated/0/price/usd_per_hour");

  after["chosen"] = nullptr;
  const Json nothing = compared(a_plan(), after, {"+1000%"});
  EXPECT_FALSE(nothing["held"].get<bool>());
  EXPECT_EQ(nothing["after"]["subject"], "nothing is chosen");
  EXPECT_TRUE(compared(after, a_plan(), {"+0%"})["held"].get<bool>());
}

TEST(Differences, RefuseWhatCannotBeCompared) {
  const auto why = [](const Json& before, const Json& after, const std::vector<std::string>& limits = {}) {
    return message_of<ConfigError>([&] { compared(before, after, limits); });
  };
  EXPECT_THAT(why(a_result(), a_plan()), AllOf(HasSubstr("b.json: /schema"), HasSubstr("ganymede.result/1")));
  Json broken = a_result();
  broken["time"].erase("total_s");
  EXPECT_THAT(why(a_result(), broken), AllOf(HasSubstr("b.json: /time"), HasSubstr("total_s")));
  broken = a_result();
  broken["cost"]["total_usd"] = "lots";
  EXPECT_THAT(why(broken, a_result()), AllOf(HasSubstr("a.json: /cost/total_usd"), HasSubstr("12.34")));
  broken = a_result();
  broken["energy"] = nullptr;
  EXPECT_THAT(why(broken, a_result(), {"carbon=+5%"}), HasSubstr("a.json: /energy/kg_co2e: is not known"));
  EXPECT_FALSE(compared(broken, a_result())["quantities"].empty());
}

TEST(GrowthLimits, AreSharesOfNamedQuantities) {
  const auto limits = read_growth_limits({"+10%", "carbon=2.5%"});
  ASSERT_EQ(limits.size(), 3U);
  EXPECT_EQ(limits[0].what, "time");
  EXPECT_EQ(limits[1].what, "cost");
  EXPECT_DOUBLE_EQ(limits[1].most, 0.1);
  EXPECT_EQ(limits[2].what, "carbon");
  EXPECT_DOUBLE_EQ(limits[2].most, 0.025);
  for (const char* wrong :
       {"", "10", "-5%", "ten%", "+10 %", "10%%", "nan%", "inf%", "cost=", "cost=10", "=10%", "0x1p3%"})
    EXPECT_THAT(message_of<ConfigError>([&] { (void)read_growth_limits({wrong}); }), HasSubstr("--fail-on")) << wrong;
  EXPECT_THAT(message_of<ConfigError>([] { (void)read_growth_limits({"cots=10%"}); }),
              HasSubstr("did you mean \"cost\"?"));
}

// A result may come from somebody else: its text must not become markup of the pull request.
TEST(Differences, MarkdownIsEscaped) {
  Json after = a_whole_result();
  after["provenance"]["scenario"]["platform"]["nodes"] = "<img src=x>|[a](b)\n# h " + kHostile;
  const std::string markdown = differences_markdown(difference(a_whole_result(), after, {"+10%"}));
  EXPECT_THAT(markdown,
              AllOf(HasSubstr("&lt;img src=x&gt;\\|\\[a\\](b)"), Not(HasSubstr("<img")), HasSubstr("| time | none |"),
                    Not(HasSubstr("\x1b")), HasSubstr("- :white_check_mark: time")));
}

}  // namespace
}  // namespace ganymede::report
