// The page's source: its content, the scripts that it may run, and text that must stay text. tests/browser tests the
// page in a browser.

#include "report/page.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <regex>

#include "common/errors.hpp"
#include "common/json_value.hpp"
#include "report/page_sections.hpp"
#include "report/results.hpp"
#include "support/when.hpp"

namespace ganymede::report {
namespace {
using testing::AllOf;
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

/// The value of a row in a column of that data: one for all rows, one of a list by index, or one for each row.
Json cell_of(const Json& data, const char* name, std::size_t row) {
  const Json& column = data["columns"][name];
  if (column.contains("all")) return column["all"];
  return column.contains("words") ? column["words"][column["rows"][row].get<std::size_t>()] : column["values"][row];
}

TEST(Candidates, RunsThatDifferInTheirSeedAreOne) {
  const Json document = sweep({run("1 x a", 1, 3, "3.00", 1), run("2 x a", 2, 1, "9.00", 1),
                               run("1 x a", 1, 1, "1.00", 2), run("1 x a", 1, 2, "2.00", 3)});
  const auto candidates = candidates_in(document);
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
  EXPECT_EQ(candidates[0].run->seed, 3U);  // the median run
}

// The number of GPUs that a policy held differs by seed, but both runs are of one configuration.
TEST(Candidates, WhatAPolicyCameToHoldIsNoConfiguration) {
  std::vector<Json> runs = {run("1 x a", 4, 3, "3.00", 1), run("1 x a", 8, 1, "1.00", 2)};
  ASSERT_EQ(candidates_in(sweep(runs)).size(), 2U);
  for (Json& one : runs) one["run"]["policy"] = "external";
  auto document = sweep(runs);
  auto candidates = candidates_in(document);
  ASSERT_EQ(candidates.size(), 1U);
  EXPECT_EQ(gpus_of(candidates[0]), "4 to 8 x V100");
  for (Json& one : document["runs"]) {
    one["launch"] = a_result()["launch"];
    one["launch"]["pools"][0].update({{"nodes", 2}, {"gpus_per_node", 1}});
  }
  candidates = candidates_in(document);
  ASSERT_EQ(candidates.size(), 1U);
  EXPECT_EQ(gpus_of(candidates[0]), "2 to 8 x V100");
}

TEST(Candidates, ParetoIsWhatNoneBeatsInBoth) {
  const Json document = sweep(
      {run("a", 1, 3, "1"), run("b", 1, 1, "9"), run("c", 1, 2, "5"), run("d", 1, 2.5, "6"), run("e", 1, 0.5, "1")});
  auto candidates = candidates_in(document);
  candidates[4].ranked_usd = std::nan("");  // a plan's candidate without a price
  EXPECT_THAT(pareto_of(candidates), ElementsAre(1, 2, 0));
}

TEST(Page, NamesItsScriptsAndFetchesNothing) {
  const std::string page = report_page(run("1 x a", 1, 3, "3.00"));
  EXPECT_THAT(page, HasSubstr("default-src 'none'; script-src 'sha256-"));
  EXPECT_THAT(page, Not(HasSubstr("unsafe-inline")));
  EXPECT_FALSE(std::regex_search(page, std::regex("(src|href)=\"?https?:")));
  EXPECT_EQ(data_of(page)["columns"]["gpus"]["all"], 1);
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
    EXPECT_EQ(cell_of(data_of(page), "rented", 0), hostile);
  }
}

// The page holds all of them, so that no filter can leave a dearer one than there is; the table that needs no script
// lists those that none beats first.
TEST(Page, ManyCandidatesAreAllInItsData) {
  NOT_SANITIZED("a page of eight thousand candidates; those of a few take the same paths");
  std::vector<Json> runs;
  for (int i = 0; i < 8000; ++i)
    runs.push_back(run(std::to_string(i) + " x a", 1, 1 + (i * 37 % 1000) / 10.0, std::to_string(5 + i * 53 % 997)));
  runs.push_back(run("best x a", 1, 0.5, "0.01"));
  const std::string page = report_page(sweep(std::move(runs)));
  const Json data = data_of(page);
  EXPECT_EQ(data["count"], 8001);
  for (const std::size_t i : {0U, 1U, 996U, 7999U}) {
    EXPECT_EQ(cell_of(data, "usd", i), 5 + i * 53 % 997) << i;
    EXPECT_EQ(cell_of(data, "rented", i), std::to_string(i) + " x a");
  }
  EXPECT_EQ(cell_of(data, "usd", 8000), 0.01);
  EXPECT_EQ(data["columns"]["usd"]["rows"].size(), 8001U);  // 998 different costs: an index for each row
  EXPECT_EQ(data["columns"]["rented"]["words"].size(), 8001U);
  EXPECT_EQ(data["columns"]["gpus"], (Json{{"all", 1}}));
  EXPECT_THAT(page, HasSubstr("Candidates: 100 of 8001 are listed"));
  EXPECT_THAT(page, HasSubstr("<td>best x a<small>Pareto</small></td>"));
}

TEST(Page, FiltersProvidersRegionsAndMarketsApart) {
  Json hybrid = run("1 x a", 1, 3, "3.00");
  hybrid["run"]["platform"] = "two clouds";
  hybrid["launch"] = {{"model", "m"}, {"precision", "fp32"}, {"batch_per_gpu", 8}};
  for (const char* provider : {"aws", "gcp", "aws"})
    hybrid["launch"]["pools"].push_back({{"provider", provider},
                                         {"region", "r"},
                                         {"market", "spot"},
                                         {"instance", "a"},
                                         {"gpu", "V100"},
                                         {"nodes", 1},
                                         {"gpus_per_node", 1}});
  const Json columns = data_of(report_page(sweep({hybrid, run("2 x a", 2, 1, "9.00")})))["columns"];
  EXPECT_EQ(columns["provider"]["words"], Json({"aws + gcp", "aws"}));
  EXPECT_EQ(columns["region"]["words"], Json({"r", "us-east-1"}));
  EXPECT_EQ(columns["market"], (Json{{"all", "spot"}}));
}

// 3 USD for 6,400 images on one GPU in 3 h.
TEST(Page, SaysWhatAMillionImagesAndAGpuHourCost) {
  const std::string page = report_page(sweep({run("1 x a", 1, 3, "3.00"), run("2 x a", 2, 1, "9.00")}));
  const auto cell = [](double value) { return fmt::format("<td class=n>{:.0f}</td>", value); };
  EXPECT_THAT(page, AllOf(HasSubstr(cell(3 / 6400e-6)), HasSubstr(cell(9 / 6400e-6))));
  EXPECT_EQ(data_of(page)["columns"]["hourly"]["values"], Json({1, 4.5}));
}

TEST(Page, ASweepSaysWhatWonAgainstTheNext) {
  Json cheap = run("1 x a", 1, 3, "3.00"), fast = run("2 x a", 2, 1, "4.00"), neither = run("3 x a", 3, 2, "6.00");
  for (Json* one : {&cheap, &fast, &neither}) (*one)["launch"] = a_result()["launch"];
  const std::string page = report_page(sweep({cheap, fast, neither}));
  EXPECT_THAT(page, HasSubstr("dcgan-64 (fp32), 6,400 images, batch 64 a GPU. Compared: 3 configurations of 3 sets of "
                              "nodes."));
  // A GPU-hour is 1 USD there and 2 USD here.
  EXPECT_THAT(page, HasSubstr("Take <strong>1 x a</strong>: 3.00 USD in 3 h (90 min .. 6 h), the cheapest.<br>It costs "
                              "25 % less than the next, 2 x a: a GPU-hour costs 1.00 USD there instead of 2.00. "
                              "Their ranges are apart."));
  EXPECT_THAT(page,
              HasSubstr("Fastest: <strong>2 x a</strong>, 60 min (30 min .. 2 h); 50 % less time than the next, 3 x a. "
                        "Their ranges overlap: the order is not sure."));
  EXPECT_THAT(page, HasSubstr("Ranges hold about 95 % of what may happen"));
  EXPECT_LT(page.find("Fastest: <strong>"), page.find("<nav"));
  EXPECT_THAT(page, AllOf(HasSubstr("price of 2026-01-01"), HasSubstr("badge good\">step time measured")));
}

// Between 8 h for 1 USD and 1 h for 16 USD, 2 h for 2 USD is a third of the way in time and a quarter of it in cost:
// the knee. With goals the cheapest that keeps to them is taken.
TEST(Page, ASweepSaysWhichToTake) {
  std::vector<Json> runs = {run("1 x a", 1, 8, "1.00"), run("4 x a", 4, 2, "2.00"), run("8 x a", 8, 1, "16.00")};
  EXPECT_THAT(
      report_page(sweep(runs)),
      HasSubstr(
          "Take <strong>4 x a</strong>: 2.00 USD in 2 h (60 min .. 4 h), the best trade between time and money."));
  for (Json& one : runs) one["goals"] = {{"deadline_s", 5400.0}, {"budget_usd", nullptr}, {"met", false}};
  EXPECT_THAT(report_page(sweep(runs)), HasSubstr("Take none: nothing meets the goals in 90 % of its runs."));
  runs[2]["goals"]["met"] = true;
  EXPECT_THAT(
      report_page(sweep(runs)),
      AllOf(HasSubstr("Take <strong>8 x a</strong>: 16.00 USD in 60 min (30 min .. 2 h), the cheapest that keeps "
                      "to the goals."),
            HasSubstr("goals met in 100.0 % of its runs")));
}

// 2 places and 2 sets of nodes would be four configurations.
TEST(Page, ASweepSaysIfItsPartsDoNotAllGoTogether) {
  Json other = run("2 x a", 2, 1, "9.00");
  other["run"]["platform"] = "gcp us-west1";
  EXPECT_THAT(report_page(sweep({run("1 x a", 1, 3, "3.00"), other})),
              HasSubstr("Compared: 2 configurations of 2 places, 2 sets of nodes, not all of which go together."));
}

// More GPU-hours at the same price, most of them lost.
TEST(Page, ASweepSaysWhyTheCheapestIsCheaper) {
  Json lossy = run("1 x b", 1, 4, "4.00");
  lossy["gpu_seconds"]["compute"] = 3600.0;
  lossy["gpu_seconds"]["lost"] = 3 * 3600.0;
  EXPECT_THAT(report_page(sweep({run("1 x a", 1, 2, "2.00"), lossy})),
              HasSubstr("It costs 50 % less than the next, 1 x b: it takes 2 GPU-hours instead of 4, most of the "
                        "difference being lost work."));
}

// The program explains schemes and policies, the report the rest. Words that the page lacks are left out.
TEST(Page, ExplainsItsWords) {
  const std::string page = report_page(sweep({run("1 x a", 1, 3, "3.00"), run("2 x a", 2, 1, "9.00")}),
                                       {{"ring", "round <about>"}, {"nccl", "another"}});
  EXPECT_THAT(page, AllOf(HasSubstr("<dt>ring</dt><dd>round &lt;about&gt;</dd>"), HasSubstr("<dt>spot</dt>"),
                          Not(HasSubstr("<dt>nccl</dt>")), Not(HasSubstr("<dt>kernel model</dt>"))));
}

TEST(Page, WarningsThatDifferInNumbersAreListedOnce) {
  Json one = run("1 x a", 1, 3, "3.00"), other = run("2 x a", 2, 1, "9.00");
  one["provenance"]["warnings"] = {"0.25 node-hours are free", "12 node-hours are free", "else"};
  other["provenance"]["warnings"] = {"3.5 node-hours are free"};
  EXPECT_THAT(report_page(sweep({one, other})),
              AllOf(HasSubstr("<li>0.25 node-hours are free <small>(and 2 with other numbers)</small></li>"),
                    HasSubstr("<li>else</li>"), Not(HasSubstr("12 node-hours"))));
}

// Two pools of one provider and one of another, whose item has no price.
TEST(Page, TheBillIsATreeWhoseRowsSumUp) {
  Json one = run("1 x a", 1, 3, "3.00");
  const Json item = one["cost"]["items"][0];
  Json storage = item, traffic = item, free = item;
  storage.update({{"item", "storage"}, {"usd", "1.00"}});
  traffic.update({{"item", "traffic"}, {"pool", "q"}, {"usd", "4.00"}});
  free.update({{"provider", "other"}, {"item", "traffic"}, {"usd", "0.00"}});
  one["cost"]["items"] = {item, storage, traffic, free};
  one["cost"]["total_usd"] = "8.00";
  std::vector<std::string> rows;
  for (const BillRow& row : bill_tree(documents::result_in(one)))
    rows.push_back(fmt::format("{} {} {} {:.3f}", row.depth, row.name, row.usd, row.share));
  EXPECT_THAT(rows, ElementsAre("0 total 8.00 1.000", "1 aws 8.00 1.000", "2 p 4.00 0.500",
                                "3 instance-hours, spot 3.00 0.375", "4 compute 3.00 0.375",
                                "3 storage, spot 1.00 0.125", "2 q 4.00 0.500", "3 traffic, spot 4.00 0.500",
                                "1 other 0.0000 0.000", "2 p 0.0000 0.000", "3 traffic, spot 0.00 0.000"));
  EXPECT_THAT(report_page(one), HasSubstr("<tr class=d1><td>aws</td><td><svg class=bar"));
}

TEST(Page, ScalingIsDrawnByWhatDiffers) {
  const auto by = [](auto&& change) {
    std::vector<Json> runs = {run("1 x a", 1, 4, "1"), run("2 x a", 2, 2, "1"), run("1 x b", 1, 4, "1"),
                              run("2 x b", 2, 3, "1")};
    for (const std::size_t i : {2U, 3U}) change(runs[i]["run"]);
    return scaling_by(candidates_in(sweep(runs)));
  };
  EXPECT_EQ(by([](Json& of) { of["gpu"] = "A100"; }), "gpu");
  EXPECT_EQ(by([](Json& of) { of["platform"] = "gcp us-west1"; }), "where");
  EXPECT_EQ(by([](Json& of) { of["scheme"] = "nccl"; }), "scheme");
  EXPECT_EQ(by([](Json&) {}), "gpu");
}

TEST(Page, ARunWithFaultsShowsItsDistributionOverSeeds) {
  Json one = run("1 x a", 1, 3, "3.00");
  const Json spread = {{"median", 2.0}, {"p5", 1.0}, {"p95", 4.0}, {"interval", {0.5, 5.0}}};
  one["seeds"] = {{"first", 1},         {"count", 4},       {"finished", 3}, {"met", 2},
                  {"losses_mean", 1.5}, {"time_s", spread}, {"usd", spread}};
  const std::string page = report_page(one);
  EXPECT_THAT(page, AllOf(HasSubstr("2 of 4 seeds meet the goals; 1.5 nodes"), HasSubstr("id=\"chart-policies\""),
                          HasSubstr("These are medians of 3 seeds"), HasSubstr("2.00 USD (0.50 .. 5.00) in"),
                          HasSubstr("goals met by 50.0 % of the seeds")));
  EXPECT_EQ(data_of(page)["seeds"][0]["spread"]["usd"], Json({0.5, 1, 2, 4, 5}));
}

TEST(Page, ARunWithoutItsPriceIsRefused) {
  Json unpriced = run("2 x a", 2, 2, "1");
  unpriced["cost"]["total_usd"] = nullptr;
  EXPECT_THROW((void)report_page(sweep({run("1 x a", 1, 3, "inf")})), ConfigError);
  EXPECT_THROW((void)report_page(sweep({unpriced})), ConfigError);
}

// A key takes as many lines as it needs; a word of a picture that lies beyond its box would not be seen.
TEST(Page, TheKeyOfALifeIsNotCutOff) {
  Json lived = run("1 x a", 1, 3, "3.00");
  const std::vector<std::string> kinds = {"checkpoint", "crashed",   "finished", "lost",     "notice",
                                          "ready",      "recovered", "released", "restored", "resized",
                                          "stage",      "straggler", "waiting"};
  for (const std::string& kind : kinds) lived["events"].push_back({{"at_s", 2.0}, {"event", kind}});
  Json document = Json::parse(R"({ "schema": "ganymede.rehearsal/1", "scenario": "s", "hosts": 4, "network": "paced",
    "took_s": 60.0, "scale": 0.1, "steps_each": 10.0, "processes": { "nodes_started": 2, "nodes_killed": 1,
    "trainings_started": 2, "steps_played": 9, "checkpoints_written": 1, "checkpoints_read": 1 },
    "comparison": [{ "what": "time", "unit": "s", "predicted": 1.0, "measured": 1.0, "off": 0.0, "share": 1.0 }],
    "decisions": { "same": true, "predicted": [], "measured": [] } })");
  document["predicted"] = document["measured"] = lived;
  const std::string page = report_page(document);
  const std::size_t key = page.find("<ul class=key>");
  ASSERT_NE(key, std::string::npos);
  for (const std::string& kind : kinds) EXPECT_NE(page.find("</svg>" + kind + "</li>", key), std::string::npos) << kind;
  const std::string svg = page.substr(page.find("<svg class=picture"), key - page.find("<svg class=picture"));
  const std::regex text("<text x=\"([0-9.]+)\"");
  for (std::sregex_iterator at(svg.begin(), svg.end(), text), end; at != end; ++at)
    EXPECT_LE(std::stod((*at)[1]), 1000) << at->str();
}

TEST(Page, AnEmptyStudyIsAPage) { EXPECT_THAT(report_page(sweep({})), HasSubstr("no finished run")); }

TEST(Page, SpansBeyondTheMostAreDrawnTogetherAndKeepTheirTime) {
  documents::StepSpans spans = {{"x"}, {}};
  double expected = 0;
  for (int i = 0; i < 30000; ++i) {
    spans.rows.push_back({i % 4, i % 3 == 0 ? 2 : 0, 0, Seconds{i * 1e-3}, Seconds{0.9e-3}});
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
