// The choice among candidates whose outcomes are written down here.

#include "plan/choice.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>
#include <vector>

#include "common/random.hpp"
#include "common/units.hpp"

namespace ganymede::plan {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

PlannedRun simulated(Verdict verdict, double time_s, double usd, double more = 1) {
  PlannedRun run;
  run.verdict = verdict;
  run.time_s = {time_s, time_s / more, time_s * more};
  run.usd = {usd, usd / more, usd * more};
  run.usd_at_worst = usd;
  run.probability = run.met_share = 1;
  return run;
}

PlannedRun ruled_out(Verdict verdict) {
  PlannedRun run;
  run.verdict = verdict;
  return run;
}

class Choices : public testing::Test {
 protected:
  /// Adds a candidate with so many nodes and these bounds.
  void add(const PlannedRun& run, int nodes, double least_s = 0, double least_usd = 0) {
    PlanCandidate candidate;
    candidate.instance = &instance;
    candidate.nodes = nodes;
    candidate.bounds = {least_s, least_usd, least_usd};
    plan.candidates.all.push_back(candidate);
    plan.runs.push_back(run);
  }
  void choose() { choose_answer(request, plan); }

  platforms::Instance instance, other_instance;
  Request request;
  Plan plan;
};

TEST_F(Choices, SayWhatIsMissedAndByHowMuch) {
  request.deadline = Seconds{7200};
  request.budget = MicroUsd{10'500'000};
  const PlannedRun slow = simulated(Verdict::misses, 9000, 10, 2), dear = simulated(Verdict::misses, 3600, 11, 1.5);
  EXPECT_EQ(describe_miss(request, slow), "takes 2.5 h (deadline 2 h)");
  EXPECT_EQ(describe_miss(request, dear), "costs 11.00 USD (budget 10.50 USD)");
  EXPECT_EQ(describe_miss(request, simulated(Verdict::misses, 9000, 11)),
            "takes 2.5 h (deadline 2 h) and costs 11.00 USD (budget 10.50 USD)");
  request.sure = true;  // the upper ends count
  EXPECT_EQ(describe_miss(request, slow),
            "takes up to 5 h (deadline 2 h) and costs up to 20.00 USD (budget 10.50 USD)");
  EXPECT_EQ(describe_miss(request, dear), "costs up to 16.50 USD (budget 10.50 USD)");
}

// Both goals are met in the median, exactly, but not as surely as was asked: shares are rounded down.
TEST_F(Choices, SayHowOftenTheGoalsAreMet) {
  request.certainty = 0.9;
  PlannedRun run = simulated(Verdict::misses, 7200, 10.5);
  run.probability = 0.8999;
  EXPECT_EQ(describe_miss(request, run), "finishes in 89 %, asked are 90 %");
  request.deadline = Seconds{7200};
  EXPECT_EQ(describe_miss(request, run), "goals met in 89 %, asked are 90 %");
  request.deadline.reset();
  request.budget = MicroUsd{10'500'000};
  EXPECT_EQ(describe_miss(request, run), "goals met in 89 %, asked are 90 %");
  run.met_share = 0.75;
  EXPECT_EQ(describe_miss(request, run), "goals met in 89 %, asked are 90 %");
  request.sure = true;  // then the seeds' share counts too
  EXPECT_EQ(describe_miss(request, run), "goals met in 75 %, asked are 90 %");
}

// 1.5 means half as much again as a goal allows; of two goals the one that is missed by more counts.
TEST_F(Choices, NearMissesAreThoseThatExceedAGoalTheLeast) {
  request.deadline = Seconds{100};
  request.budget = MicroUsd{10'000'000};
  request.certainty = 0.9;
  PlannedRun rare = ruled_out(Verdict::too_rare);
  rare.probability = 0.5;                         // 0.9 / 0.5 = 1.8
  add(simulated(Verdict::misses, 150, 5, 2), 1);  // 1.5
  add(ruled_out(Verdict::too_slow), 2, 130, 1);   // 1.3
  add(ruled_out(Verdict::too_dear), 3, 1, 16);    // 1.6
  add(rare, 4, 1, 1);                             // 1.8
  add(simulated(Verdict::misses, 10, 17), 5);     // 1.7
  add(ruled_out(Verdict::too_slow), 6, 190, 1);   // 1.9: the sixth
  add(ruled_out(Verdict::beaten), 7, 1, 1);
  add(ruled_out(Verdict::impossible), 8, 1, 1);
  add(simulated(Verdict::meets, 10, 5), 9);
  choose();
  EXPECT_THAT(plan.near_misses, ElementsAre(1, 0, 2, 4, 3));
  plan.near_misses.clear();
  request.sure = true;  // twice 150 and 5: 3 x the deadline
  choose();
  EXPECT_THAT(plan.near_misses, ElementsAre(1, 2, 4, 3, 5));
  plan.near_misses.clear();
  plan.runs[3].probability = 0;  // no training gets there: farther than anything
  choose();
  EXPECT_THAT(plan.near_misses, ElementsAre(1, 2, 4, 5, 0));
}

// The same nodes with another region, batch, policy or checkpoint are one near miss: the nearest. Other nodes are
// others.
TEST_F(Choices, NearMissesNameEachSetOfNodesOnce) {
  request.budget = MicroUsd{10'000'000};
  for (const double usd : {12., 11., 13., 14., 15., 11.}) add(simulated(Verdict::misses, 10, usd), 1);
  plan.candidates.all[0].region = "elsewhere";
  plan.candidates.all[2].market = platforms::Market::spot;
  plan.candidates.all[3].instance = &other_instance;
  plan.candidates.all[4].catalog = 1;
  choose();
  EXPECT_THAT(plan.near_misses, ElementsAre(1, 2, 3, 4));
  EXPECT_FALSE(plan.best);
  EXPECT_THAT(plan.pareto, IsEmpty());
}

TEST_F(Choices, WithoutGoalsNothingIsFartherThanAnything) {
  add(simulated(Verdict::misses, 1000, 5), 1);
  add(simulated(Verdict::misses, 10, 4), 2);
  choose();
  EXPECT_THAT(plan.near_misses, ElementsAre(1, 0));  // by cost
}

// A candidate without a figure for the objective is not an answer, and an assumed risk is not a known one.
TEST_F(Choices, PassOverWhatHasNoFigure) {
  request.objective = Objective::carbon;
  add(simulated(Verdict::meets, 10, 1), 1);
  add(simulated(Verdict::meets, 20, 2), 2);
  add(simulated(Verdict::meets, 30, 3), 3);
  for (const std::size_t i : {1U, 2U}) plan.runs[i].carbon_known = true;
  plan.runs[1].kg_co2e.median = 1;
  plan.runs[2].kg_co2e.median = 2;
  plan.runs[1].risk = "assumed";
  choose();
  EXPECT_EQ(plan.best, 1U);
  EXPECT_EQ(plan.best_of_known_risk, 2U);
  EXPECT_THAT(plan.pareto, ElementsAre(1));
}

// The pairs have few values, so that there are ties: nothing that meets the goals is better than the best, and the
// Pareto set is what no other one is at least as good as in both time and cost.
TEST_F(Choices, AreTheBestOfAllPairs) {
  RandomStream random(1, "test/choice");
  const auto few = [&] { return std::floor(1 + 5 * random.uniform()); };
  for (int round = 0; round < 300; ++round) {
    plan = {};
    request.objective = round % 2 == 0 ? Objective::cost : Objective::time;
    const int count = static_cast<int>(8 * random.uniform());
    for (int i = 0; i < count; ++i) {
      add(simulated(random.uniform() < 0.8 ? Verdict::meets : Verdict::misses, few(), few()), i + 1);
      if (random.uniform() < 0.3) plan.runs.back().risk = "assumed";
    }
    choose();
    using Rank = std::tuple<double, double, double, std::size_t>;
    std::set<Rank> ranks, known;
    std::vector<std::size_t> front;
    for (std::size_t i = 0; i < plan.runs.size(); ++i) {
      const PlannedRun& run = plan.runs[i];
      if (run.verdict != Verdict::meets) continue;
      const double time_s = run.time_s.median, usd = run.usd_at_worst;
      const Rank rank{request.objective == Objective::cost ? usd : time_s, time_s, usd, i};
      ranks.insert(rank);
      if (run.risk != "assumed") known.insert(rank);
      bool dominated = false;
      for (std::size_t k = 0; k < plan.runs.size(); ++k) {
        const PlannedRun& other = plan.runs[k];
        const bool as_good = other.time_s.median <= time_s && other.usd_at_worst <= usd;
        const bool better = other.time_s.median < time_s || other.usd_at_worst < usd || k < i;
        dominated |= k != i && other.verdict == Verdict::meets && as_good && better;
      }
      if (!dominated) front.push_back(i);
    }
    std::sort(front.begin(), front.end(),
              [&](std::size_t a, std::size_t b) { return plan.runs[a].time_s.median < plan.runs[b].time_s.median; });
    EXPECT_EQ(plan.best, ranks.empty() ? std::nullopt : std::optional(std::get<3>(*ranks.begin())));
    EXPECT_EQ(plan.best_of_known_risk, known.empty() ? std::nullopt : std::optional(std::get<3>(*known.begin())));
    EXPECT_EQ(plan.pareto, front);
    EXPECT_EQ(plan.cards.cheapest, front.empty() ? std::nullopt : std::optional(front.back()));
  }
}

// Two regions cost the same with doubtful prices at their highest values; the second one is cheaper as stated.
TEST_F(Choices, AreOfEqualOnesTheCheaperAsStated) {
  PlannedRun run = simulated(Verdict::meets, 100, 2);
  add(run, 1);
  run.usd.low = 1.5;
  add(run, 1);
  add(simulated(Verdict::meets, 100, 2), 1);
  choose();
  EXPECT_EQ(plan.best, 1U);
  EXPECT_THAT(plan.pareto, ElementsAre(1U));
}

}  // namespace
}  // namespace ganymede::plan
