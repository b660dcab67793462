// Every figure has one definition: the terminal, the JSON and the page state the same for one file.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "common/json_value.hpp"
#include "common/units.hpp"
#include "report/numbers.hpp"
#include "report/page.hpp"
#include "report/results.hpp"
#include "report/runs.hpp"
#include "sim/run/result.hpp"
#include "studies/summary.hpp"

namespace ganymede::report {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
constexpr int kSeeds = 7;

/// One GPU that is held for `hours`, boots for half an hour of them, and is busy for a quarter of all of them. The
/// interval is 10 % below and above.
sim::Result made_up(std::uint64_t seed, double hours, const char* policy = "fixed") {
  sim::Result result;
  result.platform = "aws us-east-1";
  result.market = "spot";
  result.allocation = "1 x p3.2xlarge";
  result.gpu = "V100";
  result.scheme = "none";
  result.mode = "all-reduce";
  result.placement = "data-parallel";
  result.policy = policy;
  result.gpus = 1;
  result.steps = 1000;
  result.images = 64000;
  result.total = Seconds{hours * 3600};
  result.step_mean = Seconds{(hours - 0.5) * 3.6};
  result.interval_s = {0.9 * result.total.si, 1.1 * result.total.si};
  result.sampling_interval_s = result.interval_s;
  result.fidelity = "sampled";
  result.launch = {"mlp-gan", "fp32", "mnist", 64, 64, {}};
  const double total_s = result.gpu_seconds.total = result.total.si;
  result.gpu_seconds.by_use[static_cast<std::size_t>(GpuUse::compute)] = 0.25 * total_s;
  result.gpu_seconds.by_use[static_cast<std::size_t>(GpuUse::exposed_communication)] = 0.125 * total_s;
  result.gpu_seconds.by_use[static_cast<std::size_t>(GpuUse::provisioning)] = 1800;
  result.gpu_seconds.by_use[static_cast<std::size_t>(GpuUse::idle)] = 0.625 * total_s - 1800;
  result.gpu_busy = 0.25;
  const auto micro = static_cast<std::int64_t>(hours * 1e6);
  result.bill.items = {{"instance-hours", "1 x p3.2xlarge", hours, "h", {1'000'000}, {micro}}};
  result.usd = result.bill.total();
  result.cost_usd = {0.9 * hours, 1.1 * hours};
  result.hash = "0123456789abcdef";
  result.seed = seed;
  result.inputs = "measured";
  result.risk = "preset";
  result.step_source = "measured";
  result.fabric_source = "not used";
  result.prices_as_of = "2026-07-20";
  return result;
}

/// The sweep of these results, as `sweep` writes it.
Json sweep_of(const std::vector<sim::Result>& results) {
  Json document = {{"schema", "ganymede.sweep/1"}, {"study", "s"}, {"runs", Json::array()}, {"failed", Json::array()}};
  std::vector<studies::RunFacts> facts;
  for (const sim::Result& result : results) {
    document["runs"].push_back(Json::parse(documents::result_text(result)));
    facts.push_back(studies::facts_of(OrderedJson::parse(documents::result_text(result))));
  }
  const studies::Summary summary = studies::summarize(facts);
  document["groups"] = Json::parse(summary.groups.dump());
  document["rankings"] = Json::parse(summary.rankings.dump());
  return document;
}

// 2, 4, …, 14 h: the median is 8. The 5th percentile of seven values lies 0.3 of the way from the first to the second:
// that of the low ends is 0.9 x 2.6 = 2.34 h. The 95th percentile of the high ends is 1.1 x 13.4 = 14.74 h.
TEST(Definitions, TheIntervalOverSeedsIsOneEverywhere) {
  std::vector<sim::Result> results;
  for (int i = 1; i <= kSeeds; ++i) results.push_back(made_up(static_cast<std::uint64_t>(i), 2 * i));
  const Json document = sweep_of(results);
  const Json& group = document["groups"][0];
  EXPECT_NEAR(group["time_s"]["median"].get<double>(), 8 * 3600, 1e-6);
  EXPECT_NEAR(group["time_s"]["interval"][0].get<double>(), 2.34 * 3600, 1e-6);
  EXPECT_NEAR(group["time_s"]["interval"][1].get<double>(), 14.74 * 3600, 1e-6);
  const auto candidates = candidates_in(document);
  ASSERT_EQ(candidates.size(), 1U);
  for (const auto& [what, of] : {std::pair{"time_s", candidates[0].time_s}, std::pair{"usd", candidates[0].usd}}) {
    EXPECT_NEAR(of.middle, group[what]["median"].get<double>(), 1e-6) << what;
    EXPECT_NEAR(of.low, group[what]["interval"][0].get<double>(), 1e-6) << what;
    EXPECT_NEAR(of.high, group[what]["interval"][1].get<double>(), 1e-6) << what;
  }
  EXPECT_THAT(sweep_text(document), HasSubstr("8:00:00 (2:20:24 .. 14:44:24)"));
  EXPECT_THAT(sweep_text(document), HasSubstr("8.00 (2.34 .. 14.74)"));
  EXPECT_THAT(report_page(document), HasSubstr("2:20:24 .. 14:44:24"));
}

TEST(Definitions, GpuBusyIsOfTheTimeHeldEverywhere) {
  const Json run = Json::parse(documents::result_text(made_up(1, 2)));
  const Json other = Json::parse(documents::result_text(made_up(1, 4)));
  // Half an hour of the two hours is boot, so that 25 % of the whole time are a third of the rest.
  EXPECT_THAT(run_text(run), AllOf(HasSubstr("25.0 %"), HasSubstr("33.3 % while training")));
  const Json document = {{"schema", "ganymede.sweep/1"}, {"study", "s"}, {"runs", {run}}};
  const std::string table = sweep_text(document);
  EXPECT_THAT(table, AllOf(HasSubstr("25.0 %"), HasSubstr("12.5 %"), Not(HasSubstr("33.3 %"))));
  EXPECT_DOUBLE_EQ(candidates_in(run)[0].gpu_busy, 0.25);
  EXPECT_DOUBLE_EQ(candidates_in(other)[0].gpu_busy, 0.25);
  EXPECT_THAT(report_page(run), HasSubstr("<dt>GPU busy</dt><dd>25.0 %"));
}

// Two policies with seven seeds of 2, 4, …, 14 h each, except that the last run of the second one takes 140 h: the mean
// of the differences is +129 %, the medians are equal.
TEST(Definitions, RankingsPlaceAndCompareByTheMedian) {
  std::vector<sim::Result> results;
  for (int i = 1; i <= kSeeds; ++i) results.push_back(made_up(static_cast<std::uint64_t>(i), 2 * i));
  for (int i = 1; i <= kSeeds; ++i)
    results.push_back(made_up(static_cast<std::uint64_t>(i), i == kSeeds ? 140 : 2 * i, "spot-first"));
  const Json document = sweep_of(results);
  const Json& rows = document["rankings"][0]["time_s"];
  const auto row =
      std::find_if(rows.begin(), rows.end(), [](const Json& one) { return one["policy"] == "spot-first"; });
  ASSERT_NE(row, rows.end());
  const Json& difference = (*row)["difference"];
  EXPECT_EQ(difference["seeds"], kSeeds);
  EXPECT_DOUBLE_EQ(difference["median"].get<double>(), 0);
  EXPECT_NEAR(difference["mean"].get<double>(), 9.0 / 7, 1e-9);
  EXPECT_FALSE(difference["beyond_noise"].get<bool>());
  EXPECT_THAT(sweep_text(document), AllOf(HasSubstr("+0.0 %"), Not(HasSubstr("+128.6 %"))));
  EXPECT_THAT(report_page(document), AllOf(HasSubstr("+0.0 % ["), Not(HasSubstr("+128.6 %"))));
}

// The second policy takes 10 % longer with each seed, so the medians differ by 10 % in every resample of the seeds.
TEST(Definitions, ADifferenceOfAllSeedsIsBeyondTheNoise) {
  std::vector<sim::Result> results;
  for (int i = 1; i <= kSeeds; ++i) results.push_back(made_up(static_cast<std::uint64_t>(i), 2 * i));
  for (int i = 1; i <= kSeeds; ++i) results.push_back(made_up(static_cast<std::uint64_t>(i), 2.2 * i, "spot-first"));
  const auto of = [&](const Json& document) {
    for (const Json& row : document["rankings"][0]["time_s"])
      if (row["policy"] == "spot-first") return row["difference"];
    return Json();
  };
  const Json difference = of(sweep_of(results));
  EXPECT_NEAR(difference["median"].get<double>(), 0.1, 1e-9);
  EXPECT_NEAR(difference["interval"][0].get<double>(), 0.1, 1e-9);
  EXPECT_NEAR(difference["interval"][1].get<double>(), 0.1, 1e-9);
  EXPECT_TRUE(difference["beyond_noise"].get<bool>());
  results.erase(results.begin(), results.begin() + 2);  // five common seeds are too few
  EXPECT_TRUE(of(sweep_of(results)).is_null());
}

/// Runs with two of an instance's GPUs that take 1 and 3 h, then with four of them that take 6 and 8 h.
std::vector<sim::Result> two_and_four_gpus(const char* policy) {
  std::vector<sim::Result> results;
  for (const int gpus : {2, 4})
    for (const int seed : {1, 2}) {
      results.push_back(made_up(static_cast<std::uint64_t>(seed), (gpus == 2 ? -1 : 4) + 2 * seed, policy));
      results.back().gpus = gpus;
      results.back().launch.pools = {{"aws", "us-east-1", "", "spot", "p3.2xlarge", "V100", 1, gpus}};
    }
  return results;
}

// The medians are 2 and 7 h; all four runs together would have a median of 4.5 h.
TEST(Definitions, RunsWithOtherGpusOfAnInstanceAreOtherGroupsEverywhere) {
  for (const char* policy : {"fixed", "spot-first"}) {
    const Json document = sweep_of(two_and_four_gpus(policy));
    ASSERT_EQ(document["groups"].size(), 2U) << policy;
    const auto candidates = candidates_in(document);
    ASSERT_EQ(candidates.size(), 2U) << policy;
    for (const std::size_t i : {0U, 1U}) {
      const Json& group = document["groups"][i];
      EXPECT_EQ(group["runs"], 2);
      EXPECT_EQ(group["gpus_per_node"], i == 0 ? 2 : 4);
      EXPECT_NEAR(group["time_s"]["median"].get<double>(), (i == 0 ? 2 : 7) * 3600, 1e-6);
      EXPECT_NEAR(candidates[i].time_s.middle, (i == 0 ? 2 : 7) * 3600, 1e-6);
    }
    for (const std::string& text : {sweep_text(document), report_page(document)})
      EXPECT_THAT(text,
                  AllOf(HasSubstr("1 x p3.2xlarge, 2 GPUs of each"), HasSubstr("1 x p3.2xlarge, 4 GPUs of each")));
  }
}

// The number of GPUs that a policy held in the end differs by seed, although the same allocation was requested.
TEST(Definitions, GpusThatAPolicyCameToHoldMakeNoOtherGroup) {
  std::vector<sim::Result> results = two_and_four_gpus("spot-first");
  for (sim::Result& result : results) result.launch.pools[0].gpus_per_node = 4;
  const Json document = sweep_of(results);
  EXPECT_EQ(document["groups"].size(), 1U);
  EXPECT_EQ(candidates_in(document).size(), 1U);
  EXPECT_THAT(sweep_text(document), Not(HasSubstr("GPUs of each")));
}

// One seed may have been lucky, so the text and the page say how many seeds meet the goals.
TEST(Definitions, GoalsOfSeveralSeedsAreCounted) {
  sim::Result result = made_up(3, 8);
  result.deadline = Seconds{10 * 3600.0};
  const Json alone = Json::parse(documents::result_text(result));
  EXPECT_THAT(run_text(alone), HasSubstr("-> met, seed 3 alone\n"));
  EXPECT_THAT(report_page(alone), AllOf(HasSubstr("The run of this seed meets the goals; others may fare otherwise."),
                                        Not(HasSubstr("All goals are met"))));
  result.seeds = sim::SeedRuns{
      3, 20, 19, 12, 1.5, {9 * 3600.0, 5 * 3600.0, 30 * 3600.0, 4 * 3600.0, 33 * 3600.0}, {9, 5, 30, 4, 33}};
  const Json many = Json::parse(documents::result_text(result));
  EXPECT_THAT(run_text(many), AllOf(HasSubstr("-> met, seed 3 alone; 12 of 20 seeds meet the goals"),
                                    HasSubstr("time, 19 seeds"), HasSubstr("9:00:00"), HasSubstr("4:00:00 .. 33:00:00"),
                                    HasSubstr("time, seed 3"), HasSubstr("8:00:00")));
  EXPECT_THAT(run_text(many), HasSubstr("never finish"));
  EXPECT_THAT(report_page(many), AllOf(HasSubstr("12 of 20 seeds meet the goals."), HasSubstr("4:00:00 .. 33:00:00"),
                                       Not(HasSubstr("All goals are met"))));
  // Time and cost are always those of the seed that was asked for.
  EXPECT_EQ(many["time"], alone["time"]);
  EXPECT_EQ(many["cost"], alone["cost"]);
  // If no random event affects the run, no seeds are counted.
  result.seeds.reset();
  result.risk = "none";
  EXPECT_THAT(run_text(Json::parse(documents::result_text(result))), HasSubstr("-> met\n"));
  EXPECT_THAT(report_page(Json::parse(documents::result_text(result))), HasSubstr("All goals are met."));
}

}  // namespace
}  // namespace ganymede::report
