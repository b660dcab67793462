// The page's source: its content, the scripts that it may run, and text that must stay text. tests/browser tests the
// page in a browser.

#include "report/page.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>

#include "report/candidates.hpp"
#include "report/page_sections.hpp"

namespace ganymede::report {
namespace {

using Json = nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

Json run(const std::string& allocation, int gpus, double hours, const std::string& usd, int seed = 1) {
  Json gpu_seconds = Json::object();
  for (const auto use : kGpuUseNames) gpu_seconds[std::string(use)] = 0.0;
  gpu_seconds["compute"] = hours * 3600 * gpus;
  gpu_seconds["total"] = hours * 3600 * gpus;
  Json uses = {{"idle_tail", "0.00"}, {"minimum_and_rounding", "0.00"}};
  for (const auto use : kGpuUseNames) uses[std::string(use)] = use == "compute" ? usd : "0.00";
  const double time = hours * 3600;
  return {{"schema", "ganymede.result/1"},
          {"run",
           {{"platform", "aws us-east-1"},
            {"market", "spot"},
            {"allocation", allocation},
            {"gpu", "V100"},
            {"gpus", gpus},
            {"scheme", "ring"},
            {"mode", "all-reduce"},
            {"placement", "data-parallel"},
            {"policy", "fixed"}}},
          {"time",
           {{"total_s", time},
            {"steps", 100},
            {"images", 6400},
            {"step_mean_s", time / 100},
            {"interval_s", {time / 2, time * 2}}}},
          {"utilization",
           {{"gpu_busy", 0.5}, {"gpu_flops", 0.1}, {"cpu", nullptr}, {"network", 0.1}, {"memory_bytes", 1e9}}},
          {"gpu_seconds", gpu_seconds},
          {"gpu_hours", hours * gpus},
          {"cost",
           {{"total_usd", usd},
            {"interval_usd", {usd, usd}},
            {"items",
             {{{"item", "instance-hours"},
               {"pool", "p"},
               {"quantity", hours},
               {"unit", "h"},
               {"unit_price_usd", "1"},
               {"usd", usd},
               {"provider", "aws"},
               {"region", "us-east-1"},
               {"market", "spot"}}}},
            {"instance_hours_by_use", uses}}},
          {"energy", nullptr},
          {"events",
           {{{"at_s", 0.0}, {"event", "requested"}, {"pool", "p"}, {"nodes", 1}}, {{"at_s", 1.0}, {"event", "ready"}}}},
          {"pools", Json::array()},
          {"life", {{"losses", 0}, {"checkpoints", 0}, {"lost_training_s", 0.0}, {"staleness", nullptr}}},
          {"goals", {{"deadline_s", nullptr}, {"budget_usd", nullptr}, {"met", true}}},
          {"provenance",
           {{"tool", "ganymede 0.1.0"},
            {"scenario_hash", "00"},
            {"seed", seed},
            {"inputs", "measured"},
            {"steps", "measured"},
            {"fabric", "datasheet"},
            {"software", "x"},
            {"prices_as_of", "2026-01-01"},
            {"warnings", {"beware"}}}}};
}

Json sweep(std::vector<Json> runs) {
  return {{"schema", "ganymede.sweep/1"}, {"study", "s"},
          {"runs", std::move(runs)},      {"failed", Json::array()},
          {"groups", Json::array()},      {"rankings", Json::array()}};
}

/// The data that the page gives to its script.
Json data_of(const std::string& page) {
  const std::string mark = "<script type=\"application/json\" id=data>";
  const std::size_t start = page.find(mark) + mark.size();
  return Json::parse(page.substr(start, page.find("</script>", start) - start));
}

TEST(Candidates, RunsThatDifferInTheirSeedAreOne) {
  const Json document = sweep({run("1 x a", 1, 3, "3.00", 1), run("2 x a", 2, 1, "9.00", 1),
                               run("1 x a", 1, 1, "1.00", 2), run("1 x a", 1, 2, "2.00", 3)});
  const auto candidates = candidates_of(document);
  ASSERT_EQ(candidates.size(), 2U);
  EXPECT_EQ(candidates[0].runs, 3);
  EXPECT_EQ(candidates[0].infrastructure, "aws us-east-1 spot");
  EXPECT_DOUBLE_EQ(candidates[0].time_s.middle, 7200);
  EXPECT_DOUBLE_EQ(candidates[0].usd.middle, 2);
  EXPECT_LT(candidates[0].time_s.low, 1800 * 1.2);
  EXPECT_GT(candidates[0].time_s.high, 3 * 3600 * 1.8);
  // With several runs, the parts that scale with prices are in each run.
  EXPECT_DOUBLE_EQ(candidates[0].spot_usd, 0);
  EXPECT_DOUBLE_EQ(candidates[1].spot_usd, 9);
  EXPECT_DOUBLE_EQ(candidates[1].instance_usd, 0);
  const Json seeds = data_of(report_page(document))["seeds"];
  ASSERT_EQ(seeds.size(), 1U);
  EXPECT_EQ(seeds[0]["usd"], Json({3, 1, 2}));
  EXPECT_EQ(seeds[0]["spot"], Json({3, 1, 2}));
  EXPECT_EQ(seeds[0]["instances"], Json({0, 0, 0}));
  EXPECT_EQ((*candidates[0].run)["provenance"]["seed"], 3);  // the median run
}

// The number of GPUs that a policy held differs by seed, but both runs are of one configuration.
TEST(Candidates, WhatAPolicyCameToHoldIsNoConfiguration) {
  std::vector<Json> runs = {run("1 x a", 4, 3, "3.00", 1), run("1 x a", 8, 1, "1.00", 2)};
  ASSERT_EQ(candidates_of(sweep(runs)).size(), 2U);
  for (Json& one : runs) one["run"]["policy"] = "external";
  auto document = sweep(runs);
  auto candidates = candidates_of(document);
  ASSERT_EQ(candidates.size(), 1U);
  EXPECT_EQ(gpus_of(candidates[0]), "4 to 8 x V100");
  for (Json& one : document["runs"]) one["launch"]["pools"] = {{{"nodes", 2}, {"gpus_per_node", 1}}};
  candidates = candidates_of(document);
  ASSERT_EQ(candidates.size(), 1U);
  EXPECT_EQ(gpus_of(candidates[0]), "2 to 8 x V100");
}

TEST(Candidates, ParetoIsWhatNoneBeatsInBoth) {
  const Json document = sweep(
      {run("a", 1, 3, "1"), run("b", 1, 1, "9"), run("c", 1, 2, "5"), run("d", 1, 2.5, "6"), run("e", 1, 0.5, "inf")});
  EXPECT_THAT(pareto_of(candidates_of(document)), ElementsAre(1, 2, 0));
}

TEST(Page, NamesItsScriptsAndFetchesNothing) {
  const std::string page = report_page(run("1 x a", 1, 3, "3.00"));
  EXPECT_THAT(page, HasSubstr("default-src 'none'; script-src 'sha256-"));
  EXPECT_THAT(page, Not(HasSubstr("unsafe-inline")));
  EXPECT_FALSE(std::regex_search(page, std::regex("(src|href)=\"?https?:")));
  EXPECT_EQ(data_of(page)["columns"]["gpus"][0], 1);
  EXPECT_EQ(data_of(page)["details"][0]["holdings"][0], (Json{"p", 0, 1, 0, 1}));
}

TEST(Page, HostileTextStaysText) {
  const std::string hostile = "</script><img src=x onerror=alert(1)>\"'&";
  Json one = run(hostile, 1, 3, "3.00");
  one["provenance"]["warnings"] = {hostile};
  one["events"][0]["pool"] = hostile;
  one["cost"]["items"][0]["pool"] = hostile;
  for (const Json& document : {one, sweep({one, run("other", 2, 1, "4")})}) {
    const std::string page = report_page(document);
    EXPECT_THAT(page, Not(HasSubstr("<img")));
    EXPECT_THAT(page, HasSubstr("&lt;/script&gt;&lt;img src=x onerror=alert(1)&gt;&quot;&#39;&amp;"));
    EXPECT_EQ(data_of(page)["columns"]["rented"]["words"][0], hostile);
  }
}

TEST(Page, ManyCandidatesAreASampleThatKeepsTheBest) {
  std::vector<Json> runs;
  for (int i = 0; i < 8000; ++i)
    runs.push_back(run(std::to_string(i) + " x a", 1, 1 + (i * 37 % 1000) / 10.0, std::to_string(5 + i * 53 % 997)));
  runs.push_back(run("best x a", 1, 0.5, "0.01"));
  const std::string page = report_page(sweep(std::move(runs)));
  const Json data = data_of(page);
  EXPECT_EQ(data["columns"]["gpus"].size(), kMaxCandidates);
  EXPECT_THAT(page, HasSubstr("3000 of 8001 candidates are shown"));
  EXPECT_THAT(data["columns"]["rented"]["words"].get<std::vector<std::string>>(), testing::Contains("best x a"));
}

TEST(Page, WithoutAPriceACostIsUnknown) {
  Json one = run("1 x a", 1, 3, "inf");
  Json other = run("2 x a", 2, 2, "1");
  other["cost"]["total_usd"] = nullptr;
  const std::string page = report_page(sweep({one, other}));
  EXPECT_THAT(page, HasSubstr("no price"));
  EXPECT_EQ(data_of(page)["columns"]["usd"][0][0], nullptr);
  EXPECT_THAT(page, Not(HasSubstr(">nan")));
}

TEST(Page, AnEmptyStudyIsAPage) { EXPECT_THAT(report_page(sweep({})), HasSubstr("no finished run")); }

TEST(Page, SpansBeyondTheMostAreDrawnTogetherAndKeepTheirTime) {
  Json spans = {{"kinds", {"compute", "host", "communication", "exposed", "straggler", "input"}},
                {"names", {"x"}},
                {"rows", Json::array()}};
  double expected = 0;
  for (int i = 0; i < 30000; ++i) {
    spans["rows"].push_back({i % 4, i % 3 == 0 ? 2 : 0, 0, i * 1e-3, 0.9e-3});
    expected += 0.9e-3;
  }
  std::vector<std::string> names = {"x"};
  const auto rows = capped_spans(spans, names, 2000);
  EXPECT_LE(rows.size(), 2000U);
  EXPECT_GT(rows.size(), 500U);
  double sum = 0;
  for (const auto& row : rows) sum += row[4].get<double>();
  EXPECT_NEAR(sum, expected, expected * 0.01);
  EXPECT_EQ(names.size(), 2U);
  std::vector<std::string> same = {"x"};
  EXPECT_EQ(capped_spans(spans, same, 30000).size(), 30000U);
  EXPECT_EQ(same.size(), 1U);
}

}  // namespace
}  // namespace ganymede::report
