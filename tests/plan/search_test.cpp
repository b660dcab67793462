// What a plan searches, how it ranks doubtful prices, and what it says about unknown risk.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/units.hpp"
#include "plan/candidate_scenarios.hpp"
#include "plan/chosen_scenario.hpp"
#include "plans.hpp"
#include "report/plans.hpp"
#include "sim/run/simulate.hpp"

namespace ganymede::plan {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

TEST(NodeCounts, AreAllUpToSixteenThenFourADoubling) {
  EXPECT_THAT(node_counts(1, 6), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(node_counts(3, 3), ElementsAre(3));
  EXPECT_THAT(node_counts(15, 70), ElementsAre(15, 16, 20, 24, 28, 32, 40, 48, 56, 64, 70));
  EXPECT_THAT(node_counts(100, 100), ElementsAre(100));
  EXPECT_TRUE(node_counts(3, 2).empty());
}

class SearchedPlans : public Plans {
 protected:
  SearchedPlans() {
    platform = Json::parse(made_up_platform());
    // With links this fast, n nodes are nearly n times as fast.
    platform["instances"]["one"]["nic"]["bandwidth"] = "1000Gbit/s";
    content["search"]["markets"] = {"on-demand"};
    content["search"]["instances"] = {"one"};
  }
  Json planned() {
    folder_.add("lab.json", platform.dump());
    return json();
  }
  Json& prices(const char* instance) { return platform["instances"][instance]["prices"]; }
  Json platform;
};

// One node takes an hour and two at least half of that; three take some 1,300 s and four some 1,000 s. Each node boots
// for 90 s, which cost 0.09 USD: more nodes cost more.
TEST_F(SearchedPlans, ThreeNodesMeetGoalsThatTwoAndFourMiss) {
  const auto usd_of = [&](int gpus) {
    content["search"]["min_gpus"] = content["search"]["max_gpus"] = gpus;
    const Json plan = planned();
    EXPECT_EQ(plan["chosen"]["nodes"], gpus);
    return plan["chosen"]["usd"]["median"].get<double>();
  };
  const double three = usd_of(3), four = usd_of(4);
  ASSERT_LT(three + 0.01, four);
  content["search"]["min_gpus"] = 1;
  content["search"]["max_gpus"] = 8;
  content["deadline"] = "1600s";
  content["search"]["certainty"] = 0.5;  // the budget is so near that its probability is hardly more
  content["budget"] = fmt::format("{:.6f}USD", (three + four) / 2);
  const Json plan = planned();
  EXPECT_EQ(plan["chosen"]["nodes"], 3);
  EXPECT_EQ(plan["searched"]["meeting"], 1);
}

// "four" is sold with four GPUs at 10.80 USD/h: if three are used, all four are paid for, and one is always idle.
TEST_F(SearchedPlans, APartOfAnInstanceIsOfferedAndItsIdleRestIsPaid) {
  content["search"]["instances"] = {"four"};
  content["search"]["min_gpus"] = content["search"]["max_gpus"] = 3;
  const Json plan = planned();
  ASSERT_FALSE(plan["chosen"].is_null());
  EXPECT_EQ(plan["chosen"]["gpus"], 3);
  EXPECT_EQ(plan["chosen"]["gpus_per_node"], 3);
  EXPECT_EQ(plan["chosen"]["part_of_instance"], true);
  EXPECT_NEAR(plan["chosen"]["usd"]["median"].get<double>(),
              10.8 * std::ceil(plan["chosen"]["time_s"]["median"].get<double>()) / 3600, 0.0031);
  EXPECT_THAT(report::plan_text(plan), HasSubstr("1 x four, 3 GPUs of each"));
  const Json run =
      Json::parse(documents::result_text(sim::simulate(load_scenario_or_plan(folder_.add("plan.json", plan.dump())))));
  // It is idle from the end of the 90 s of boot; the boot counts as provisioning for all four.
  EXPECT_NEAR(run["gpu_seconds"]["idle"].get<double>(), run["time"]["total_s"].get<double>() - 90, 1e-6);
  // Whole instances fit a number that divides by four, so no part of an instance is offered.
  content["search"]["max_gpus"] = 8;
  const Json whole = planned();
  for (const Json& row : whole["simulated"]) EXPECT_EQ(row["part_of_instance"], false);
}

TEST_F(SearchedPlans, SayWhyAnInstanceIsNotOffered) {
  platform["instances"]["one"]["available"] = 2;
  content["search"].erase("instances");
  content["search"]["gpus"] = {"GPU-X"};
  content["search"]["min_gpus"] = content["search"]["max_gpus"] = 5;
  prices("four")[0]["region"] = "room-3";
  content["search"]["regions"] = {"room-1"};
  platform["instances"]["other"]["prices"][0]["region"] = "room-3";
  EXPECT_THAT(planned()["left_out"].dump(),
              AllOf(HasSubstr("1 instance type, no price in the regions and on the markets searched: four"),
                    HasSubstr("1 instance type, no number of them has 5 GPUs: one")));
}

// p5.48xlarge went from 98.32 to 55.04 USD/h: an undated price may be 1.786 times as high.
TEST_F(SearchedPlans, AnUndatedPriceWinsOnlyIfItWouldAtItsWorst) {
  constexpr double kMove = 98.32 / 55.04;
  content["search"]["max_gpus"] = 1;
  prices("one") =
      Json::array({{{"region", "dated"},
                    {"market", "on-demand"},
                    {"per_hour", "3.60USD/h"},
                    {"as_of", "2026-11-01"},
                    {"source", "the list"}},
                   {{"region", "undated"}, {"market", "on-demand"}, {"per_hour", "2.10USD/h"}, {"as_of", "undated"}}});
  Json plan = planned();  // 2.10 x 1.786 = 3.75
  EXPECT_EQ(plan["chosen"]["region"], "dated");
  EXPECT_TRUE(plan["chosen"]["price"]["doubt"].is_null());
  EXPECT_THAT(report::plan_text(plan), HasSubstr("3.60 USD/h a node, of 2026-11-01, 19 days old, source the list"));

  prices("one")[1]["per_hour"] = "2.00USD/h";  // 2.00 x 1.786 = 3.57
  plan = planned();
  EXPECT_EQ(plan["chosen"]["region"], "undated");
  EXPECT_EQ(plan["chosen"]["price"]["doubt"], "undated");
  const Json& usd = plan["chosen"]["usd"];
  EXPECT_NEAR(usd["at_worst_prices"].get<double>(), kMove * usd["median"].get<double>(), 1e-6);
  EXPECT_GE(usd["interval"][1].get<double>(), usd["at_worst_prices"].get<double>() - 1e-6);
  EXPECT_LE(usd["interval"][0].get<double>(), usd["median"].get<double>() / kMove + 1e-6);
  EXPECT_THAT(report::plan_text(plan), HasSubstr("this price is doubtful (undated)"));
}

// The age of a price is counted to the day of now (2026-11-20), or to the day that the request names.
TEST_F(SearchedPlans, AnOldPriceIsDoubtfulFromAYearOn) {
  content["search"]["max_gpus"] = 1;
  prices("one") =
      Json::array({{{"region", "old"}, {"market", "on-demand"}, {"per_hour", "3.00USD/h"}, {"as_of", "2025-11-20"}},
                   {{"region", "new"}, {"market", "on-demand"}, {"per_hour", "3.60USD/h"}, {"as_of", "2026-11-01"}}});
  EXPECT_EQ(planned()["chosen"]["region"], "old");  // 365 days
  content["search"]["today"] = "2026-11-21";        // 366 days
  EXPECT_EQ(planned()["chosen"]["region"], "new");
  content["search"]["max_price_age"] = "400d";
  EXPECT_EQ(planned()["chosen"]["region"], "old");
  content["search"]["today"] = "yesterday";
  EXPECT_THAT(error(), HasSubstr("/search/today"));
}

// If nothing says when the spot nodes of room-2 are taken back, each seed draws it.
TEST_F(SearchedPlans, AnAssumedRiskWinsNeverSilently) {
  content["search"]["max_gpus"] = 1;
  content["search"]["markets"] = {"on-demand", "spot"};
  prices("one")[1].erase("interrupted_per_month");
  Json plan = planned();
  EXPECT_EQ(plan["chosen"]["market"], "spot");
  EXPECT_EQ(plan["chosen"]["risk"], "assumed");
  EXPECT_GT(plan["chosen"]["time_s"]["interval"][1], plan["chosen"]["time_s"]["median"]);
  EXPECT_EQ(plan["best_of_known_risk"]["market"], "on-demand");
  EXPECT_NEAR(plan["best_of_known_risk"]["usd"]["median"].get<double>(), 3.69, 1e-6);
  EXPECT_THAT(report::plan_text(plan),
              AllOf(HasSubstr("RISK ASSUMED"), HasSubstr("without that risk: lab room-1, 1 x one")));

  prices("one")[1]["interrupted_per_month"] = 0.25;
  plan = planned();
  EXPECT_EQ(plan["chosen"]["risk"], "stated");
  EXPECT_THAT(report::plan_text(plan), Not(HasSubstr("RISK")));
  prices("one")[1].erase("interrupted_per_month");
  content["search"]["markets"] = {"on-demand"};
  EXPECT_THAT(report::plan_text(planned()), Not(HasSubstr("RISK")));
}

TEST_F(SearchedPlans, WhatMayBeLostIsRunWithMoreSeeds) {
  content["search"].erase("seeds");
  content["search"]["markets"] = {"on-demand", "spot"};
  prices("one")[1]["interrupted_per_month"] = 0.25;
  const Json plan = planned();
  for (const Json& row : plan["simulated"]) EXPECT_EQ(row["seeds"], row["market"] == "spot" ? 20 : 5) << row.dump();
}

// An hour of training and 90 s of boot, both at 3.60 USD/h, is what the simulation of one node gives too.
TEST_F(SearchedPlans, BoundsCountTheStart) {
  content["search"]["max_gpus"] = 1;
  folder_.add("lab.json", platform.dump());
  const Request of = request();
  const Candidates candidates = enumerate(of, false);
  ASSERT_FALSE(candidates.all.empty());
  for (const PlanCandidate& one : candidates.all) EXPECT_NEAR(one.bounds.time_s, 3690, 0.01) << label_of(of, one);
  EXPECT_NEAR(candidates.all.front().bounds.usd, 3.69, 1e-4);
  EXPECT_NEAR(planned()["chosen"]["usd"]["median"].get<double>(), 3.69, 1e-6);
}

// A step with 128 images takes 1.5 times as long as one with 64, so it trains 4/3 of the images a second.
TEST_F(SearchedPlans, TheBatchIsSearched) {
  traces::StepTrace trace = made_up_trace(std::vector<double>(40, 1e-3));
  trace.batches.push_back(made_up_trace(std::vector<double>(40, 1.5e-3), "GPU-X", 128).batches.front());
  folder_.add("t.json", traces::write_step_trace(trace));
  content["search"]["max_gpus"] = 1;
  Json plan = planned();
  EXPECT_EQ(plan["request"]["batches_per_gpu"], Json::array({64, 128}));
  EXPECT_EQ(plan["chosen"]["batch_per_gpu"], 128);
  EXPECT_NEAR(plan["chosen"]["time_s"]["median"].get<double>(), 0.75 * 3600 + 90, 1e-6);
  EXPECT_EQ(plan["chosen"]["scenario"]["workload"]["batch_per_gpu"], 128);
  EXPECT_THAT(report::plan_text(plan),
              AllOf(HasSubstr("CHOSEN: lab room-1, 1 x one ("), HasSubstr(", batch 128), none")));
  content["workload"]["batch_per_gpu"] = 64;
  EXPECT_NEAR(planned()["chosen"]["time_s"]["median"].get<double>(), 3690, 1e-6);
  content["workload"]["batch_per_gpu"] = {64, 100};
  EXPECT_THAT(error(), HasSubstr("/workload/batch_per_gpu/1: found 100, expected a batch size that"));
}

// A step of one pass takes 10 ms, of which 2.5 ms (updates and the end) happen once. So a step of two
// passes takes 17.5 ms for twice the images, and the hour of training 3,150 s, with three pauses.
TEST_F(SearchedPlans, PassesAndEvaluationsReachTheScenarios) {
  content["search"]["max_gpus"] = 1;
  content["workload"]["accumulation_steps"] = 2;
  content["evaluation"] = {{"every", "1000s"}, {"fixed", "60s"}};
  const Json plan = planned();
  EXPECT_EQ(plan["request"]["batches_per_gpu"], Json::array({128}));
  const Json& scenario = plan["chosen"]["scenario"];
  EXPECT_EQ(scenario["workload"]["batch_per_gpu"], 128);
  EXPECT_EQ(scenario["workload"]["accumulation_steps"], 2);
  EXPECT_EQ(scenario["evaluation"], content["evaluation"]);
  const double time_s = plan["chosen"]["time_s"]["median"].get<double>();
  EXPECT_NEAR(time_s, 90 + 3150 + 3 * 60, 0.1);
  EXPECT_LE(plan["chosen"]["bounds"]["time_s"].get<double>(), time_s);
  content["workload"]["batch_per_gpu"] = 64;
  EXPECT_THAT(error(), HasSubstr("/workload/batch_per_gpu: found 64, expected a batch size that"));
}

// Two nodes, one of them on demand, cost 3.60 + 0.90 USD/h.
TEST_F(SearchedPlans, SomeNodesOnSpotBesideOthersOnDemand) {
  prices("one")[1]["region"] = "room-1";
  prices("one")[1]["interrupted_per_month"] = 0;
  content["search"]["markets"] = {"on-demand", "spot"};
  content["search"]["min_gpus"] = content["search"]["max_gpus"] = 2;
  content["search"]["policies"] = {"fixed"};
  const Request of = [&] {
    folder_.add("lab.json", platform.dump());
    return request();
  }();
  PlanOptions options;
  options.effort = Effort::exhaustive;
  const Plan plan = make_plan(of, options);
  int mixed = 0;
  for (std::size_t i = 0; i < plan.runs.size(); ++i) {
    const PlanCandidate& candidate = plan.candidates.all[i];
    if (candidate.on_demand_nodes == 0) continue;
    ++mixed;
    EXPECT_EQ(candidate.nodes, 2);
    EXPECT_EQ(price_of(candidate), (MicroUsdPerHour{4'500'000}));
    EXPECT_NEAR(plan.runs[i].usd.median, 4.5 * std::ceil(plan.runs[i].time_s.median) / 3600, 0.002);
    EXPECT_GE(plan.runs[i].usd.median, candidate.bounds.usd);
  }
  EXPECT_EQ(mixed, 1);  // with the one checkpoint interval that is tried
  content["search"]["mixed"] = false;
  EXPECT_THAT(report::plan_text(planned()), Not(HasSubstr("on demand,")));
}

// The search goes on in rounds of 16 groups. Four numbers of "four" and eight of "one" and of "other", each on demand
// and at risk, are more than one round.
TEST_F(SearchedPlans, QuickAndInterruptedOnesSayWhatTheyDidNotTry) {
  content["search"].erase("instances");
  content["search"].erase("markets");
  content["search"]["max_gpus"] = 16;
  content["search"]["checkpoints"] = {"1h"};
  folder_.add("lab.json", platform.dump());
  const Request of = request();
  PlanOptions options;
  options.effort = Effort::quick;
  const Plan quick = make_plan(of, options);
  ASSERT_TRUE(quick.best);
  EXPECT_GT(quick.untried, 0U);
  const Json file = Json::parse(plan_json(of, quick, folder_.path()));
  EXPECT_EQ(file["effort"], "quick");
  EXPECT_EQ(file["searched"]["untried"], quick.untried);
  EXPECT_EQ(file["searched"]["beaten"].get<std::size_t>() + quick.untried, quick.count(Verdict::beaten));
  // Interrupted after the first round, it is the same answer, and interrupted at once it is none.
  options.effort = Effort::normal;
  std::string better;
  options.better = [&](const PlanCandidate& candidate, const PlannedRun& /*run*/) { better = label_of(of, candidate); };
  options.stopped = [&] { return !better.empty(); };
  EXPECT_EQ(make_plan(of, options).best, quick.best);
  EXPECT_EQ(better, label_of(of, quick.candidates.all[*quick.best]));
  options.stopped = [] { return true; };
  const Plan none = make_plan(of, options);
  EXPECT_FALSE(none.best);
  EXPECT_EQ(none.untried, none.candidates.all.size());
}

// Candidates share all-reduces and steps, which changes none of their runs: each is that of its scenario alone.
TEST_F(SearchedPlans, RunAsTheirScenariosDoAlone) {
  prices("one")[1]["region"] = "room-1";
  content["search"]["markets"] = {"on-demand", "spot"};
  content["search"]["min_gpus"] = content["search"]["max_gpus"] = 4;
  content["search"]["schemes"] = {"tree"};
  content["search"]["seeds"] = 1;
  folder_.add("lab.json", platform.dump());
  const Request of = request();
  PlanOptions options;
  options.effort = Effort::exhaustive;
  const Plan plan = make_plan(of, options);
  int compared = 0;
  for (std::size_t i = 0; i < plan.runs.size(); ++i) {
    if (!plan.runs[i].simulated()) continue;
    sim::Scenario alone = CandidateScenarios(of).scenario(plan.candidates.all[i]);
    sim::set_seed(alone, of.seed);
    EXPECT_EQ(sim::simulate(alone).total.si, plan.runs[i].time_s.median) << label_of(of, plan.candidates.all[i]);
    ++compared;
  }
  EXPECT_GE(compared, 5);  // on demand, spot by two policies, and two numbers of nodes on demand beside others on spot
}

}  // namespace
}  // namespace ganymede::plan
