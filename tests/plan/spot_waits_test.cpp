// What waiting for spot nodes costs at least, against simulated runs.

#include "plan/spot_waits.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "common/usd.hpp"
#include "plan/bounds.hpp"
#include "plan/candidate_scenarios.hpp"
#include "plan/evaluate.hpp"
#include "plans.hpp"
#include "sim/run/simulate.hpp"

namespace ganymede::plan {
namespace {

/// Nobody says when the spot nodes of "one" are taken back: each seed draws a zone from those that were measured.
class SpotWaits : public Plans {
 protected:
  SpotWaits() {
    platform = Json::parse(made_up_platform());
    Json& prices = platform["instances"]["one"]["prices"];
    for (Json& price : prices) {
      price["region"] = "room-1";
      price.erase("interrupted_per_month");
    }
    content["workload"]["images"] = 4 * 23'040'000;  // four hours of one GPU
    content["search"]["instances"] = {"one"};
    content["search"]["policies"] = {"fixed"};
    content["search"]["max_gpus"] = 4;
    content["search"]["seeds"] = 12;
    content["search"]["checkpoints"] = {"1h"};
  }
  Request asked() {
    folder_.add("lab.json", platform.dump());
    return request();
  }
  Json platform;
};

TEST_F(SpotWaits, AreNoMoreThanEachRunTakesAndCosts) {
  int tighter = 0, dearer = 0;
  for (const char* free : {"", "1h"}) {
    if (*free != 0) platform["billing"]["free_if_interrupted_within"] = free;
    const Request of = asked();
    CandidateScenarios scenarios(of);
    for (PlanCandidate& candidate : enumerate(of, true).all) {
      sim::Scenario scenario = scenarios.scenario(candidate);
      for (std::uint64_t seed = 0; seed < 12; ++seed) {
        const auto waiting = waiting_runs(of, candidate, candidate.bounds, scenario, {&seed, 1}, {});
        ASSERT_EQ(waiting.has_value(), candidate.at_risk());
        if (!waiting) break;
        const Bounds least = waiting->medians();
        try {
          const sim::Result run = sim::simulate(scenario, of.caches->steps);
          EXPECT_GE(run.total.si, least.time_s) << label_of(of, candidate) << " " << seed;
          EXPECT_GE(usd_of(run.bill.total()), least.usd) << label_of(of, candidate) << " " << seed;
        } catch (const Infeasible&) {  // it never finishes
        }
        tighter += least.time_s > 1.2 * candidate.bounds.time_s ? 1 : 0;
        dearer += least.usd > 1.2 * candidate.bounds.usd ? 1 : 0;
      }
    }
  }
  EXPECT_GT(tighter, 30);
  EXPECT_GT(dearer, 30);
}

// Trainings that get to an FID after half, once and three times as many images as the median one.
TEST_F(SpotWaits, ToAnFidAreThoseOfEachRunsImages) {
  content["workload"] = Json::parse(R"({ "model": "dcgan-64", "batch_per_gpu": 64,
      "quality": { "fid": 60, "dataset": "CIFAR10", "reference": "test 10000" } })");
  content["search"].update(Json::parse(R"({ "catalogs": ["gcp"], "regions": ["us-central1"], "markets": ["spot"],
      "instances": ["g2-standard-4"], "max_gpus": 2, "certainty": 0.3 })"));
  const Request of = request();
  CandidateScenarios scenarios(of);
  int longer = 0;
  for (PlanCandidate& candidate : enumerate(of, true).all) {
    sim::Scenario scenario = scenarios.scenario(candidate);
    const double median = images_of(of, candidate);
    double before_s = 0;
    for (const double times : {0.5, 1., 3.}) {
      const std::int64_t images = std::llround(times * median);
      for (std::uint64_t seed = 0; seed < 4; ++seed) {
        sim::train_to_fid(scenario, images);
        const auto waiting = waiting_runs(of, candidate, candidate.bounds, scenario, {&seed, 1}, {&images, 1});
        ASSERT_TRUE(waiting);
        const sim::Result run = sim::simulate(scenario, of.caches->steps);
        EXPECT_GE(run.total.si, waiting->medians().time_s) << label_of(of, candidate) << " " << times;
        EXPECT_GE(usd_of(run.bill.total()), waiting->medians().usd) << label_of(of, candidate) << " " << times;
      }
      const double least_s = bounds_for_images(of, candidate, candidate.bounds, images).time_s;
      longer += least_s > 1.5 * before_s ? 1 : 0;
      before_s = least_s;
    }
  }
  EXPECT_GE(longer, 4);
}

TEST_F(SpotWaits, AnUnfinishedRunHasTakenAndCostLessThanItWill) {
  content["search"]["policies"] = {"fixed", "spot-first"};
  int asked_for = 0, near_the_end = 0;
  for (const char* free : {"", "1h"}) {
    if (*free != 0) platform["billing"]["free_if_interrupted_within"] = free;
    const Request of = asked();
    CandidateScenarios scenarios(of);
    for (PlanCandidate& candidate : enumerate(of, true).all) {
      sim::Scenario scenario = scenarios.scenario(candidate);
      sim::set_seed(scenario, 5);
      Bounds most;
      const auto never = [&](sim::Nanoseconds now, const std::vector<sim::Node>& nodes) {
        const Bounds so_far = bounds_of_unfinished(of, scenario, now, nodes);
        EXPECT_GE(so_far.time_s, most.time_s);
        most = {so_far.time_s, std::max(most.usd, so_far.usd), std::max(most.usd_at_worst, so_far.usd_at_worst)};
        ++asked_for;
        return false;
      };
      const auto run = sim::simulate_unless(never, scenario, of.caches->steps);
      ASSERT_TRUE(run);
      EXPECT_EQ(run->total.si, sim::simulate(scenario, of.caches->steps).total.si);
      EXPECT_GE(run->total.si, most.time_s);
      EXPECT_GE(usd_of(run->bill.total()), most.usd) << label_of(of, candidate);
      near_the_end += most.usd > 0.5 * usd_of(run->bill.total()) ? 1 : 0;
      const auto at_once = [](sim::Nanoseconds, const std::vector<sim::Node>&) { return true; };
      if (most.time_s > 0) {
        EXPECT_FALSE(sim::simulate_unless(at_once, scenario, of.caches->steps));
      }
    }
  }
  EXPECT_GT(asked_for, 100);
  EXPECT_GT(near_the_end, 10);
}

TEST_F(SpotWaits, RuleOutOnlyWhatMissesTheGoals) {
  int slow = 0, dear = 0;
  for (const char* deadline : {"3h", "6h", ""}) {
    content.erase("deadline");
    if (*deadline != 0) content["deadline"] = deadline;
    content["budget"] = *deadline != 0 ? "20USD" : "8USD";
    const Request of = asked();
    PlanOptions options;
    options.jobs = 2;
    const Plan some = make_plan(of, options);
    options.effort = Effort::exhaustive;
    const Plan all = make_plan(of, options);
    EXPECT_EQ(some.best, all.best);
    EXPECT_EQ(some.pareto, all.pareto);
    for (std::size_t i = 0; i < all.runs.size(); ++i) {
      const PlannedRun& run = some.runs[i];
      if (!run.reason.starts_with("waits for spot nodes: ")) continue;
      EXPECT_NE(all.runs[i].verdict, Verdict::meets) << label_of(of, all.candidates.all[i]) << run.reason;
      if (all.runs[i].simulated()) {
        EXPECT_GE(all.runs[i].time_s.median, run.at_least.time_s);
        EXPECT_GE(all.runs[i].usd_at_worst, run.at_least.usd_at_worst);
      }
      ++(run.verdict == Verdict::too_slow ? slow : dear);
    }
  }
  EXPECT_GT(slow, 0);
  EXPECT_GT(dear, 0);
}

// One node that is there in the second hour, and from the fifth on: half an hour of start leaves half an hour
// of the first of these times, and the rest of ten hours follows after the second start.
TEST_F(SpotWaits, CountTheTimeFromEachStart) {
  content["search"]["markets"] = {"spot"};
  content["search"]["max_gpus"] = 1;
  const Request of = asked();
  PlanCandidate candidate = enumerate(of, true).all.front();
  sim::Scenario scenario = CandidateScenarios(of).scenario(candidate);
  sim::ScenarioPool& pool = scenario.pools.front();
  pool.spot = sim::Spot::recorded;
  pool.capacity = sim::Series{};
  for (const auto& [hour, nodes] : {std::pair{1, 3.}, {2, 0.}, {4, 1.}})
    pool.capacity->rows.push_back({Seconds{3600. * hour}, nodes});
  SpotWait wait = wait_for_spot(scenario, pool, 1800, 36000, 1e6);
  EXPECT_TRUE(wait.ends);
  EXPECT_NEAR(wait.end_s, 3600 * (4 + 0.5 + 9.5), 1e-6);
  EXPECT_NEAR(wait.node_s, 3600 * (1 + 10), 1e-6);
  EXPECT_EQ(wait.interrupted, 1);
  wait = wait_for_spot(scenario, pool, 1800, 36000, 7200);
  EXPECT_FALSE(wait.ends);
  EXPECT_NEAR(wait.end_s, 7200, 1e-6);
  EXPECT_NEAR(wait.node_s, 3600, 1e-6);
}

}  // namespace
}  // namespace ganymede::plan
