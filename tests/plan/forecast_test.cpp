// A training under way: its log, the forecast of its end, and the comparison with a plan.

#include "plan/forecast.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "common/errors.hpp"
#include "plan/watch.hpp"
#include "plans.hpp"

namespace ganymede::plan {
namespace {

using testing::AllOf;
using testing::HasSubstr;

/// A run of `steps` steps of 64 images, of which `done` are logged, 10 in a line, at `step_s` each; it evaluates for
/// 30 s after each 50, the last ones too.
RunLog steady(double step_s, int done, int steps = 1000) {
  RunLog log;
  log.model = "dcgan-64";
  log.batch = 64;
  log.planned = steps;
  log.begin_unix_s = log.last_unix_s = 1000;
  log.steps.push_back({0, 1000});
  double now = 1000;
  for (int step = 10; step <= done; step += 10) {
    log.steps.push_back({step, now += 10 * step_s});
    if (step % 50 == 0) {
      now += 30;
      log.pauses.push_back({"evaluation", step, 30, now});
      log.steps.push_back({step, now});
    }
  }
  log.last_unix_s = now;
  return log;
}

TEST(Forecast, CountsThePausesToCome) {
  for (const int done : {100, 130, 500, 990}) {
    const RunForecast now = forecast(steady(0.5, done), {});
    EXPECT_NEAR(now.step_s, 0.5, 1e-9) << done;
    EXPECT_NEAR(now.total_s.median, 1000 * 0.5 + 20 * 30, 1e-6) << done;
  }
  EXPECT_EQ(forecast(steady(0.5, 1000), {}).total_s.low, 1000 * 0.5 + 20 * 30);
}

TEST(Forecast, NarrowsAsTheRunGoesOn) {
  double before = INFINITY;
  for (const int done : {100, 300, 500, 700, 900, 1000}) {
    const RunForecast now = forecast(steady(0.5, done), {});
    const double width = now.total_s.high - now.total_s.low;
    EXPECT_LT(width, before) << done;
    before = width;
  }
  EXPECT_EQ(before, 0);
}

/// A run of 1,000 steps, of which `done` are logged, `every` in a line; step_s gives the seconds of each.
template <typename StepSeconds>
RunLog varied(int done, int every, StepSeconds step_s) {
  RunLog log = steady(0, 0);
  double now = log.begin_unix_s;
  for (int step = 1; step <= done; ++step) {
    now += step_s(step);
    if (step % every == 0) log.steps.push_back({step, log.last_unix_s = now});
  }
  return log;
}

// StyleGAN evaluates at its first tick. One pause of 30 s at step 1 was taken to come again at each of 100,000 steps.
TEST(Forecast, APauseAloneDoesNotRecur) {
  RunLog log = varied(1000, 1, [](int) { return 0.5; });
  log.planned = 100'000;
  const auto evaluate_after = [&](std::size_t step) {  // line i is of step i
    for (std::size_t i = step + 1; i < log.steps.size(); ++i) log.steps[i].unix_s += 30;
    log.last_unix_s += 30;
    log.pauses.push_back({"evaluation", static_cast<std::int64_t>(step), 30, log.steps[step].unix_s + 30});
  };
  evaluate_after(1);
  EXPECT_NEAR(forecast(log, {}).total_s.median, 100'000 * 0.5 + 30, 1e-6);
  EXPECT_EQ(forecast(log, {}).pause_s, 0);
  EXPECT_THAT(forecast(log, {}).lone_pauses, testing::ElementsAre("evaluation"));
  // The plan evaluates every 4,000 steps: 24 times after step 1.
  EXPECT_NEAR(forecast(log, {}, {}, {{"evaluation", {4000}}}).total_s.median, 100'000 * 0.5 + 25 * 30, 1e-6);
  EXPECT_NEAR(forecast(log, {}, {}, {{"checkpoint", {4000}}}).total_s.median, 100'000 * 0.5 + 30, 1e-6);
  // A second one after step 501 says more than the plan: 200 in all, the last one after step 99,501.
  evaluate_after(501);
  EXPECT_NEAR(forecast(log, {}, {}, {{"evaluation", {4000}}}).total_s.median, 100'000 * 0.5 + 200 * 30, 1e-6);
  EXPECT_NEAR(forecast(log, {}).pause_s, 30.0 / 500, 1e-12);
  EXPECT_TRUE(forecast(log, {}).lone_pauses.empty());
}

// After 1,000 of 100,000 steps none of the plan's 25 evaluations was due; those of every 900 steps were, and are in the
// pace.
TEST(Forecast, PlannedPausesComeThoughNoneWasMade) {
  RunLog log = varied(1000, 1, [](int) { return 0.5; });
  log.planned = 100'000;
  EXPECT_NEAR(forecast(log, {}, {}, {{"evaluation", {4000, 60}}}).total_s.median, 100'000 * 0.5 + 25 * 60, 1e-6);
  EXPECT_NEAR(forecast(log, {}, {}, {{"evaluation", {900, 60}}}).total_s.median, 100'000 * 0.5, 1e-6);
}

// Two metrics are evaluated one after the other.
TEST(Forecast, PausesAfterTheSameStepCountOnce) {
  RunLog log = steady(0.5, 100);
  RunLog twice = log;
  twice.pauses.clear();
  for (LoggedPause pause : log.pauses) {
    const double end = pause.unix_s;
    pause.seconds = 10, pause.unix_s = end - 20;
    twice.pauses.push_back(pause);
    pause.seconds = 20, pause.unix_s = end;
    twice.pauses.push_back(pause);
  }
  EXPECT_NEAR(forecast(twice, {}).total_s.median, 1000 * 0.5 + 20 * 30, 1e-6);
}

TEST(Forecast, AStopIsNoPace) {
  // The run stood still for as long as it has trained; that costs its own time and slows no step to come.
  const RunLog once = varied(100, 10, [](int step) { return step == 35 ? 100.0 : 1.0; });
  EXPECT_NEAR(forecast(once, {}).step_s, 1, 1e-12);
  EXPECT_NEAR(forecast(once, {}).total_s.median, 1000 + 99, 1e-9);
  // Stops of one length recur: 15 s at each 25 steps, as at the end of a pass over the data.
  const RunLog often = varied(100, 10, [](int step) { return step % 25 == 0 ? 15.0 : 1.0; });
  EXPECT_NEAR(forecast(often, {}).total_s.median, 1000 + 40 * 14, 1e-9);
}

TEST(Forecast, AfterAChangeForGoodOnlyTheNewPaceCounts) {
  const auto halved = [](int step) { return (step <= 150 ? 3.0 : 1.5) * (1 + 0.01 * std::sin(7.0 * step)); };
  EXPECT_NEAR(forecast(varied(300, 10, halved), {}).step_s, 1.5, 0.01);
  EXPECT_NEAR(forecast(varied(300, 10, halved), {}).total_s.median, 150 * 3 + 850 * 1.5, 10);
  // Two lines of another pace are not enough to go by.
  EXPECT_GT(forecast(varied(170, 10, halved), {}).step_s, 2.5);
}

TEST(Forecast, ADriftGoesOnWithTheLogarithmOfTheSteps) {
  double all = 0;
  for (const double rise : {0.04, -0.04}) {
    const auto drifting = [&](int step) { return 1 + rise * std::log(step) + 0.003 * std::sin(5.0 * step); };
    all = 0;
    for (int step = 1; step <= 1000; ++step) all += drifting(step);
    const RunForecast now = forecast(varied(100, 10, drifting), {});
    EXPECT_NEAR(now.total_s.median / all, 1, 0.01) << rise;
    EXPECT_LT(now.total_s.low, all);
    EXPECT_GT(now.total_s.high, all);
  }
  // Neither noise nor a slow first line is a drift.
  const auto warming = [](int step) { return (step <= 10 ? 1.5 : 1.0) + 0.001 * std::sin(3.0 * step); };
  EXPECT_GT(forecast(varied(100, 10, warming), {}).step_s, 0.999);
  const RunLog noisy = varied(100, 10, [](int step) { return 1 + 0.1 * std::sin(3.0 * step); });
  EXPECT_NEAR(forecast(noisy, {}).step_s, 1, 0.01);
}

TEST(Forecast, KnowsTheStagesToComeOfAGrowingModel) {
  const std::vector<StageWork> stages{{0.2, 1}, {0.3, 2}, {0.5, 8}};
  const auto growing = [](int step) { return step <= 200 ? 0.1 : step <= 500 ? 0.2 : 0.8; };
  for (const int done : {100, 300, 600})
    EXPECT_NEAR(forecast(varied(done, 10, growing), {}, stages).total_s.median, 200 * 0.1 + 300 * 0.2 + 500 * 0.8, 1e-6)
        << done;
  // Before the first line, the plan's mean step counts for the whole run.
  EXPECT_NEAR(forecast(varied(0, 10, growing), StepPrior{{0.48, 0.3, 0.7}}, stages).total_s.median, 480, 1e-9);
  // The log of a run that goes on begins within a stage.
  RunLog resumed = varied(300, 10, growing);
  resumed.begin_step = 250;
  resumed.steps.erase(resumed.steps.begin(), resumed.steps.begin() + 25);
  resumed.begin_unix_s = resumed.steps.front().unix_s;
  EXPECT_NEAR(forecast(resumed, {}, stages).total_s.median, 250 * 0.2 + 500 * 0.8, 1e-6);
}

TEST(Forecast, WholeSecondsAreFineEnough) {
  RunLog log = varied(100, 1, [](int) { return 0.3; });
  for (LoggedStep& step : log.steps) step.unix_s = std::floor(step.unix_s);
  log.last_unix_s = std::floor(log.last_unix_s);
  EXPECT_NEAR(forecast(log, {}).total_s.median, 300, 10);
  // Few lines, most of them within one second.
  log.steps.resize(8);
  log.last_unix_s = log.steps.back().unix_s;
  EXPECT_NEAR(forecast(log, {}).step_s, 2.0 / 7, 1e-9);
}

TEST(Forecast, BeginsWithThePlanAndForgetsIt) {
  const StepPrior prior{{1.0, 0.5, 2.0}};
  RunLog log = steady(0.5, 0);
  EXPECT_FALSE(forecast(log, prior).observed);
  EXPECT_EQ(forecast(log, prior).total_s.median, 1000);
  EXPECT_EQ(forecast(log, prior).total_s.high, 2000);
  // A single line of the log counts as much as the plan; many equal ones outweigh it.
  EXPECT_NEAR(forecast(steady(0.5, 10), prior).step_s, std::sqrt(0.5 * 1.0), 1e-9);
  EXPECT_NEAR(forecast(steady(0.5, 300), prior).step_s, 0.5, 1e-6);
}

TEST(Forecast, ChanceRisesWithTheTime) {
  const RunForecast now = forecast(steady(0.5, 300), {});
  EXPECT_EQ(now.chance_within(now.elapsed_s), 0);
  EXPECT_NEAR(now.chance_within(now.total_s.median), 0.5, 1e-9);
  EXPECT_NEAR(now.chance_within(now.total_s.high), 0.95, 1e-9);
  double before = 0;
  for (double seconds = now.elapsed_s + 1; seconds < 2 * now.total_s.high; seconds += 20) {
    EXPECT_GE(now.chance_within(seconds), before);
    before = now.chance_within(seconds);
  }
  const RunForecast over = forecast(steady(0.5, 1000), {});
  EXPECT_EQ(over.chance_within(over.elapsed_s), 1);
  EXPECT_EQ(over.chance_within(over.elapsed_s - 1), 0);
}

TEST(Forecast, IsNoNumberBeforeAnythingIsKnown) {
  const RunForecast now = forecast(steady(0.5, 0), {});
  EXPECT_FALSE(now.observed);
  EXPECT_EQ(now.step_s, 0);
  RunLog still = steady(0, 100);  // a clock that stands still
  still.pauses.clear();
  EXPECT_FALSE(forecast(still, {}).observed);
}

/// A plan on one node, and a log of a run that follows it.
class Watched : public Plans {
 protected:
  Watched() {
    content["search"]["max_gpus"] = 1;
    content["search"]["markets"] = {"on-demand"};
    content["search"]["instances"] = {"one"};
    content["search"]["policies"] = {"fixed"};
  }
  documents::Forecast forecast_of(const RunLog& log) {
    folder_.add("lab.json", made_up_platform());
    const auto file = folder_.add("plan.json", json().dump());
    return plan::watched(load_watched_plan(file), log, "run.jsonl");
  }
  Json watched(const RunLog& log) { return Json::parse(documents::forecast_json(forecast_of(log)).dump()); }
};

TEST_F(Watched, ARunAsPlannedCostsWhatWasPlanned) {
  constexpr int kBatch = 23040;  // in 1,000 steps all images of the plan
  RunLog log = steady(0, 0);
  log.model.clear();
  log.batch = kBatch;
  const Json before = watched(log);
  const auto planned_s = before["plan_time_s"]["median"].get<double>(), setup_s = before["setup_s"].get<double>();
  EXPECT_NEAR(before["time_s"]["median"].get<double>(), planned_s, 0.2 * setup_s);
  RunLog on_time = steady((planned_s - setup_s - 20 * 30) / 1000, 500);
  on_time.model.clear();
  on_time.batch = kBatch;
  const Json now = watched(on_time);
  EXPECT_NEAR(now["time_s"]["median"].get<double>(), planned_s, 1);
  EXPECT_NEAR(now["usd"]["median"].get<double>(), now["plan_usd"]["median"].get<double>(), 0.01);
  EXPECT_NEAR(now["spent_usd"].get<double>(), now["usd_per_hour"].get<double>() * now["elapsed_s"].get<double>() / 3600,
              1e-9);
  EXPECT_FALSE(now["decision"]["changes"].get<bool>());
  EXPECT_EQ(now["decision"]["pools"].size(), 1U);
}

// One GPU has nobody to meet.
TEST_F(Watched, ALoneGpuWaitsForNoOtherAtTheStart) {
  RunLog log = steady(0, 0);
  log.model.clear();
  const auto setup_s = [&](const char* communicator) {
    folder_.add("lab.json", made_up_platform());
    Json document = json();
    document["chosen"]["scenario"]["provisioning"]["communicator_start"] = communicator;
    return plan::watched(load_watched_plan(folder_.add("plan.json", document.dump())), log, "run.jsonl").setup_s;
  };
  EXPECT_DOUBLE_EQ(setup_s("300s"), setup_s("0s"));
}

// A twentieth of the plan's time or more is work that is lost with nodes: a step is compared with a step.
TEST_F(Watched, OnSpotAStepIsThatOfTraining) {
  RunLog log = steady(0.5, 100);
  log.model.clear();
  log.batch = 23040;
  content["workload"]["images"] = 200LL * 23'040'000;  // 200 h
  const auto on_demand_s = watched(log)["plan_step_s"].get<double>();
  content["search"]["markets"] = {"spot"};
  content["checkpoint"] = {{"every", "50h"}};
  Json platform = Json::parse(made_up_platform());
  platform["instances"]["one"]["prices"][1]["interrupted_per_month"] = 0.999;  // each 106 h
  folder_.add("lab.json", platform.dump());
  const Json plan = json();
  EXPECT_GT(plan["chosen"]["lost_s"].get<double>(), 0.05 * 200 * 3600);
  const auto file = folder_.add("plan.json", plan.dump());
  const Json now =
      Json::parse(documents::forecast_json(plan::watched(load_watched_plan(file), log, "run.jsonl")).dump());
  EXPECT_NEAR(now["plan_step_s"].get<double>() / on_demand_s, 1, 0.02);
  EXPECT_THAT(now["warnings"].dump(), HasSubstr("its nodes may be taken back"));
}

TEST_F(Watched, ASinglePauseRecursAsThePlanEvaluates) {
  content["evaluation"] = {{"every", "100 steps"}, {"fixed", "30s"}};
  RunLog log = steady(0.5, 10);
  log.model.clear();
  log.last_unix_s += 30;
  log.pauses.push_back({"evaluation", 10, 30, log.last_unix_s});
  log.steps.push_back({10, log.last_unix_s});
  const auto planned_s = watched(log)["time_s"]["median"].get<double>();
  log.pauses[0].what = "of another name";
  // After steps 110 to 910; if the plan's have not begun, after 100 to 1,000.
  EXPECT_NEAR(planned_s - watched(log)["time_s"]["median"].get<double>(), (9 - 10) * 30, 1e-6);
  EXPECT_THAT(watched(log)["warnings"].dump(), HasSubstr("how often it will again is not known"));
}

TEST_F(Watched, ARunOfFewerImagesIsForecastToTakeLess) {
  RunLog log = steady(0, 0);
  log.model.clear();
  log.batch = 11520;
  const Json half = watched(log);
  const double training_s = half["plan_time_s"]["median"].get<double>() - half["setup_s"].get<double>();
  EXPECT_NEAR(half["time_s"]["median"].get<double>(), half["setup_s"].get<double>() + training_s / 2,
              0.02 * training_s);
}

TEST_F(Watched, AGrowingModelBeginsFasterThanItEnds) {
  content["workload"] = {{"model", "progressive-gan"}, {"batch_per_gpu", {16}}, {"images", 160000}};
  RunLog log = steady(0.5, 100, 10000);
  log.model.clear();
  log.batch = 16;
  log.pauses.clear();
  // The log has steps of small images; those of large images take many times as long.
  EXPECT_GT(watched(log)["time_s"]["median"].get<double>(), 3 * 0.5 * 10000);
}

TEST_F(Watched, ASlowRunEndangersTheDeadline) {
  content["deadline"] = "2h";
  RunLog log = steady(20, 200);
  log.model.clear();
  const Json now = watched(log);
  EXPECT_LT(now["deadline"]["probability"].get<double>(), 0.1);
  EXPECT_THAT(now["warnings"].dump(), AllOf(HasSubstr("a step takes"), HasSubstr("the deadline is met")));
  EXPECT_TRUE(endangers_deadline(forecast_of(log)));
}

TEST_F(Watched, ARunThatEndedEarlySaysSo) {
  RunLog log = steady(1, 100);
  log.model.clear();
  log.end = "finished";
  EXPECT_THAT(watched(log)["warnings"].dump(),
              HasSubstr(fmt::format("after {} of its {} steps", log.done(), log.planned)));
}

TEST_F(Watched, AnotherModelIsRefused) {
  RunLog log = steady(1, 100);
  log.model = "another";
  EXPECT_THAT(message_of<ConfigError>([&] { watched(log); }), HasSubstr("a run of \"another\""));
  EXPECT_THAT(message_of<ConfigError>([&] { watched(RunLog{}); }), HasSubstr("no line yet"));
}

}  // namespace
}  // namespace ganymede::plan
