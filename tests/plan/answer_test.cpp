// Cards and what more money buys, from plans written down here; and the probability of a plan's candidates.

#include "plan/answer.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "common/json.hpp"
#include "plans.hpp"

namespace ganymede::plan {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

PlannedRun meeting(double hours, double usd, double probability = 1, double usd_high = 0) {
  PlannedRun run;
  run.verdict = Verdict::meets;
  run.time_s = {hours * 3600, hours * 3600, hours * 3600};
  run.usd = {usd, usd, std::max(usd, usd_high)};
  run.usd_at_worst = usd;
  run.probability = probability;
  return run;
}

Plan plan_of(std::vector<PlannedRun> runs, std::vector<std::size_t> pareto, std::size_t best) {
  Plan plan;
  plan.runs = std::move(runs);
  plan.pareto = std::move(pareto);
  plan.best = best;
  return plan;
}

// From 1 h for 100 USD to 8 h for 10 USD. In units of the whole way, 2 h for 20 USD are a third in time and lg 2 in
// cost, together 0.63; 4 h for 15 USD are two thirds and lg 1.5, together 0.84. Both ends are 1.
TEST(Cards, TheKneeIsFarthestBelowTheLineBetweenTheEnds) {
  Plan plan = plan_of({meeting(8, 10), meeting(4, 15), meeting(2, 20), meeting(1, 100)}, {3, 2, 1, 0}, 0);
  EXPECT_EQ(cards_of(plan).cheapest, 0U);
  EXPECT_EQ(cards_of(plan).balanced, 2U);
  plan.runs[1].usd_at_worst = 10.5;  // two thirds and lg 1.05, together 0.69
  plan.runs[2].usd_at_worst = 40;    // a third and lg 4, together 0.94
  EXPECT_EQ(cards_of(plan).balanced, 1U);
}

// Four times as fast for four times the money, and the point between on the line or above it: nothing is a knee.
TEST(Cards, WithoutAKneeTheCheapestIsBalanced) {
  EXPECT_EQ(cards_of(plan_of({meeting(4, 10), meeting(2, 20), meeting(1, 40)}, {2, 1, 0}, 0)).balanced, 0U);
  EXPECT_EQ(cards_of(plan_of({meeting(4, 10), meeting(2, 30), meeting(1, 40)}, {2, 1, 0}, 0)).balanced, 0U);
  EXPECT_EQ(cards_of(plan_of({meeting(4, 10)}, {0}, 0)).balanced, 0U);
  EXPECT_FALSE(cards_of(plan_of({}, {}, 0)).cheapest);
}

TEST(Cards, TheSafestHasTheHighestProbabilityThenTheLowestUpperEnd) {
  Plan plan = plan_of({meeting(8, 10, 0.92, 30), meeting(4, 15, 0.9996, 40), meeting(5, 16, 0.9999, 20)}, {1, 0}, 0);
  EXPECT_EQ(cards_of(plan).safest, 2U);  // both are above 99 %
  plan.runs[1].probability = 0.9985;
  EXPECT_EQ(cards_of(plan).safest, 2U);
  plan.runs[1].probability = 0.9911;  // both are shown as "> 99 %"
  plan.runs[2].risk = "assumed";
  EXPECT_EQ(cards_of(plan).safest, 1U);
  plan.runs[2].probability = 0.99;
  EXPECT_EQ(cards_of(plan).safest, 1U);
  plan.runs[1].verdict = plan.runs[2].verdict = Verdict::misses;
  EXPECT_EQ(cards_of(plan).safest, 0U);
}

// 1.18 USD more than 47.57 USD are 2.5 %.
TEST(MoreMoney, BuysHalfTheTimeAndCertainty) {
  Plan plan = plan_of({meeting(60, 47.57, 0.9), meeting(30, 48.75, 0.95), meeting(50, 49, 1), meeting(10, 50, 1),
                       meeting(56, 48, 0.905)},
                      {1, 0}, 0);
  EXPECT_THAT(more_money_of(plan), ElementsAre(1, 2));  // 50 USD are 5.1 % more
  plan.runs[2].verdict = Verdict::misses;
  EXPECT_THAT(more_money_of(plan), ElementsAre(1));
  plan.runs[1].usd.median = 60;  // ranked by its worst price, and dearer in the median
  EXPECT_THAT(more_money_of(plan), IsEmpty());
}

// The best takes 100 h for 100 USD, at 50 %. What is bought is within 5 % of both costs; "faster" saves a tenth,
// "surer" is a hundredth more.
TEST(MoreMoney, BuysWhatIsWorthSayingUpToTheLimits) {
  const PlannedRun best = meeting(100, 100, 0.5);
  const auto bought = [&](std::vector<PlannedRun> others) {
    others.insert(others.begin(), best);
    return more_money_of(plan_of(std::move(others), {0}, 0));
  };
  EXPECT_THAT(bought({}), IsEmpty());
  EXPECT_THAT(bought({meeting(90, 105, 0.5)}), ElementsAre(1));
  EXPECT_THAT(bought({meeting(90.1, 105, 0.5)}), IsEmpty());
  EXPECT_THAT(bought({meeting(90, 105.1, 0.5)}), IsEmpty());
  EXPECT_THAT(bought({meeting(100, 100, 0.51)}), ElementsAre(1));
  EXPECT_THAT(bought({meeting(100, 100, 0.509)}), IsEmpty());
  EXPECT_THAT(bought({meeting(100, 105.1, 0.9)}), IsEmpty());
  EXPECT_THAT(bought({meeting(80, 104, 0.9), meeting(90, 104, 0.6)}), ElementsAre(1));  // both
  // The fastest, of those the cheapest, of those the first; the surest, of those the fastest.
  EXPECT_THAT(bought({meeting(80, 104, 0.5), meeting(70, 104, 0.5), meeting(75, 101, 0.5)}), ElementsAre(2));
  EXPECT_THAT(bought({meeting(80, 104, 0.5), meeting(80, 103, 0.5), meeting(80, 103, 0.5)}), ElementsAre(2));
  EXPECT_THAT(bought({meeting(99, 104, 0.7), meeting(99, 104, 0.8), meeting(99, 104, 0.6)}), ElementsAre(2));
  EXPECT_THAT(bought({meeting(99, 104, 0.8), meeting(98, 104, 0.8), meeting(98, 104, 0.8)}), ElementsAre(2));
  Plan nothing = plan_of({meeting(90, 100)}, {}, 0);
  nothing.best.reset();
  EXPECT_THAT(more_money_of(nothing), IsEmpty());
}

TEST(Cards, ProbabilitiesAboveNinetyNinePercentAreOne) {
  EXPECT_EQ(per_mille(0), 0);
  EXPECT_EQ(per_mille(0.1234), 123);
  EXPECT_EQ(per_mille(0.1236), 124);
  EXPECT_EQ(per_mille(0.99), 990);
  EXPECT_EQ(per_mille(0.9901), 1000);
  // The first of two that are equally sure and whose costs have the same upper end is the safest.
  EXPECT_EQ(cards_of(plan_of({meeting(4, 10, 0.8, 30), meeting(2, 20, 0.8, 30)}, {1, 0}, 0)).safest, 0U);
  EXPECT_EQ(cards_of(plan_of({meeting(4, 10, 0.8, 30), meeting(2, 20, 0.8, 29)}, {1, 0}, 0)).safest, 1U);
}

double erfc_below(double z) { return 0.5 * std::erfc(-z / std::sqrt(2.0)); }

// One GPU takes 3,690 s, of which it boots for 90 s, with a measured error of the rest, which the plan states. A
// deadline is that far into its distribution, and with 3.60 USD/h a budget is another.
TEST_F(Plans, TheProbabilityIsThatOfTheStatedError) {
  content["search"]["gpus"] = {"GPU-X"};
  content["search"]["max_gpus"] = content["search"]["seeds"] = 1;
  content["search"]["markets"] = {"on-demand"};
  content["search"]["instances"] = {"one"};
  content["search"]["certainty"] = 0.5;
  content["deadline"] = "3900s";
  const Json row = json()["chosen"];
  const auto high = row["time_s"]["interval"][1].get<double>();
  ASSERT_GT(high, 3900);
  const double in_time = 1.959964 * std::log((3900 - 90) / 3600.0) / std::log((high - 90) / 3600);
  EXPECT_NEAR(row["probability"].get<double>(), erfc_below(in_time), 2e-6);
  EXPECT_EQ(row["met_share"], 1.0);

  content["budget"] = "3.80USD";
  const auto usd_high = row["usd"]["interval"][1].get<double>();
  const double in_budget = 1.959964 * std::log((3.80 - 0.09) / 3.60) / std::log((usd_high - 0.09) / 3.60);
  ASSERT_LT(in_budget, in_time);
  EXPECT_NEAR(json()["chosen"]["probability"].get<double>(), erfc_below(in_budget), 2e-6);
  content["search"]["certainty"] = erfc_below(in_budget) + 0.01;
  EXPECT_TRUE(json()["chosen"].is_null());
}

// Spot in room-2 costs a quarter, and a price of no date may be 2.81 times as high, but not above on demand, which is
// not sold there. Its mean cost is what the objective minimizes, and the worst tenth costs more than the mean.
TEST_F(Plans, RiskIsAnObjective) {
  content["search"]["max_gpus"] = 2;
  for (const char* objective : {"risk-neutral", "risk-averse"}) {
    content["objective"] = objective;
    const Json plan = json();
    const char* what = std::string_view(objective) == "risk-neutral" ? "expected" : "worst_tenth";
    EXPECT_EQ(plan["request"]["objective"], objective);
    for (const Json& row : plan["simulated"]) {
      EXPECT_GE(row["usd"]["worst_tenth"], row["usd"]["expected"]);
      EXPECT_GE(row["usd"][what], plan["chosen"]["usd"][what]);
    }
  }
  content["objective"] = "risk-seeking";
  EXPECT_THAT(error(), testing::HasSubstr("/objective: found \"risk-seeking\""));
}

// What a plan asks can be asked again from its own file, whatever flags and defaults have set.
TEST_F(Plans, AskedIsTheRequestAgain) {
  content["deadline"] = "40min";
  content["budget"] = "20USD";
  content["search"]["policies"] = {"fixed", "spot-first"};
  content["provisioning"] = {{"boot", "100s"}};
  const Json plan = json();
  const auto file = folder_.add("again.json", plan["asked"].dump());
  const Request again = read_request(JsonNode::load(file), kNow);
  Json same = Json::parse(plan_json(again, make_plan(again, {}), folder_.path()));
  same["request"]["trace"] = plan["request"]["trace"];            // another path to the same file
  same["provenance"]["request"] = plan["provenance"]["request"];  // as it was written, without what was left out
  EXPECT_EQ(same, plan);
  const KnownPlan known = read_plan(JsonNode::load(folder_.add("plan.json", json().dump())));
  EXPECT_EQ(known.plan.simulated, plan["searched"]["simulated"]);
  EXPECT_EQ(known.plan.runs[*known.plan.best].usd.median, plan["chosen"]["usd"]["median"]);
}

}  // namespace
}  // namespace ganymede::plan
