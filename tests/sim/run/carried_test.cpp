// Runs with a trace that does not fit exactly: workers that differ on another device, another batch size, a quality as
// the target, a list of layers.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "calibration/interval_classes.hpp"
#include "calibration/worker_variation.hpp"
#include "common/errors.hpp"
#include "sim/run/scenario_files.hpp"

namespace ganymede::sim {
namespace {
using testing::Contains;
using testing::HasSubstr;

/// The made-up GAN on `nodes` nodes with a GPU; its trace was recorded on a processor.
Json on_other_nodes(int nodes, const Json& synchronization = {{"scheme", "ring"}}) {
  traces::StepTrace trace = constant_trace(4);
  trace.device.kind = "cpu";
  Json content = ScenarioFiles::basic();
  content["platform"] = {{"catalog", "lab.json"}, {"instance", "other"}, {"nodes", nodes}};
  content["synchronization"] = synchronization;
  return simulate_json(ScenarioFiles(trace).load(content));
}

TEST(WorkersThatDiffer, WaitForTheSlowest) {
  const Json alike = on_other_nodes(2, {{"scheme", "ring"}, {"jitter", 0}});
  const Json differ = on_other_nodes(2);
  const double compute = number(alike, "/gpu_seconds/compute");
  // Both networks' gradients are 16 MB; `alike` says how long a worker's step is on the new device.
  const double step_s = compute / number(alike, "/time/steps") / 2;
  const double waiting = calibration::synchronization_slowdown(calibration::kGraphVariation, 2, 0, 1, 16e6, step_s) - 1;
  EXPECT_NEAR(number(differ, "/gpu_seconds/straggler") / compute, waiting, 1e-6);
  EXPECT_NEAR(number(differ, "/gpu_seconds/compute") / compute, 1, 1e-9);  // each still does its own work
  EXPECT_GT(number(differ, "/time/step_mean_s"), number(alike, "/time/step_mean_s"));
  EXPECT_EQ(number(alike, "/gpu_seconds/straggler"), 0);
  EXPECT_THAT(differ["provenance"]["warnings"], Contains(HasSubstr("several workers are taken to differ by 1.4 %")));
}

TEST(WorkersThatDiffer, AreAsManyDeviationsApartAsIsAskedFor) {
  const Json wide = on_other_nodes(4, {{"scheme", "ring"}, {"jitter", 0.1}});
  EXPECT_NEAR(number(wide, "/gpu_seconds/straggler") / number(wide, "/gpu_seconds/compute"),
              0.1 * calibration::expected_slowest(4), 1e-6);
  // Without the slowest worker, a step waits for the second slowest.
  const Json backed = on_other_nodes(4, {{"scheme", "ring"}, {"jitter", 0.1}, {"backup_workers", 1}});
  EXPECT_LT(number(backed, "/time/step_mean_s"), number(wide, "/time/step_mean_s"));
}

TEST(WorkersThatDiffer, HardlyMatterOverManyLocalSteps) {
  const auto waits = [&](int steps) {
    const Json run =
        on_other_nodes(4, {{"scheme", "ring"}, {"mode", "local-sgd"}, {"local_steps", steps}, {"jitter", 0.1}});
    return number(run, "/gpu_seconds/straggler") / number(run, "/gpu_seconds/compute");
  };
  EXPECT_NEAR(waits(100),
              std::sqrt(0.0115 * 0.0115 + (0.01 - 0.0115 * 0.0115) / 100) * calibration::expected_slowest(4), 1e-3);
  EXPECT_LT(waits(100), waits(1) / 3);
  const Json alone = on_other_nodes(4, {{"scheme", "ring"}, {"mode", "async-parameter-server"}, {"jitter", 0.1}});
  EXPECT_EQ(number(alone, "/gpu_seconds/straggler"), 0);  // nobody waits for anybody
}

// Nobody waits, and nothing else widens the interval: what is left of a step of several machines does.
TEST(WorkersThatDiffer, HaveAnIntervalWithAServerToo) {
  const Json run = on_other_nodes(4, {{"scheme", "ring"}, {"mode", "async-parameter-server"}});
  const double total = number(run, "/time/total_s");
  const double training = number(run, "/time/steps") * number(run, "/time/step_mean_s");
  const double width =
      calibration::half_width({.link = calibration::LinkEvidence::datasheet, .eager = false, .several_machines = true});
  EXPECT_LE(number(run, "/time/interval_s/0"), total - (1 - std::exp(-width)) * training);
  EXPECT_GE(number(run, "/time/interval_s/1"), total + (std::exp(width) - 1) * training);
}

TEST(WorkersThatDiffer, OneWaitsForNobody) {
  EXPECT_EQ(number(on_other_nodes(1), "/gpu_seconds/straggler"), 0);
  EXPECT_EQ(on_other_nodes(1, {{"scheme", "ring"}, {"jitter", 0.5}})["time"]["step_mean_s"],
            on_other_nodes(1)["time"]["step_mean_s"]);
}

/// Batches of 16, 32 and 64 that take 2, 3 and 5 ms: 1 ms, and 1/16 ms for each image.
traces::StepTrace three_batches() {
  traces::StepTrace trace = made_up_trace(std::vector<double>(40, 2e-4), "GPU-X", 16);
  for (const auto& [batch, unit] : {std::pair{32, 3e-4}, {64, 5e-4}})
    trace.batches.push_back(made_up_trace(std::vector<double>(40, unit), "GPU-X", batch).batches.front());
  return trace;
}

TEST(AnotherBatchSize, IsCarriedAndSaysSo) {
  Json content = ScenarioFiles::with("/workload/batch_per_gpu", 48);
  content["platform"]["nodes"] = 1;
  const Json run = simulate_json(ScenarioFiles(three_batches()).load(content));
  EXPECT_NEAR(number(run, "/time/step_mean_s"), 4e-3, 1e-5);
  EXPECT_EQ(run["time"]["images"], 48'000);
  EXPECT_THAT(run["provenance"]["steps"].get<std::string>(),
              HasSubstr("at batch 48 by a fit over 3 batch sizes from 16 to 64"));
  content["workload"]["batch_per_gpu"] = 256;
  const Json beyond = simulate_json(ScenarioFiles(three_batches()).load(content));
  EXPECT_NEAR(number(beyond, "/time/step_mean_s"), 17e-3, 1e-4);
  EXPECT_THAT(beyond["provenance"]["warnings"],
              Contains(HasSubstr("batch 256 lies beyond the calibrated range of 16 to 64")));
}

TEST(AQuality, IsATargetInImages) {
  const ScenarioFiles files;
  files.folder().add("curve.json",
                     R"({ "schema": "ganymede.quality/1", "model": "made-up-gan", "dataset": "d", "features": "f",
    "curves": [ { "batch": 64, "points": [ { "images": 6400, "fid": 100, "inception_score": 1 }, { "images": 64000, "fid": 10, "inception_score": 2 } ] },
                { "batch": 128, "points": [ { "images": 12800, "fid": 100, "inception_score": 1 }, { "images": 128000, "fid": 10, "inception_score": 2 } ] } ] })");
  Json content = ScenarioFiles::basic();
  content["workload"].erase("steps");
  content["workload"]["quality"] = {{"fid", 10}, {"curve", "curve.json"}};
  const Json two = simulate_json(files.load(content));
  EXPECT_EQ(two["time"]["images"], 128'000);  // two workers of 64
  EXPECT_EQ(two["time"]["steps"], 1'000);
  content["platform"]["nodes"] = 1;
  const Json one = simulate_json(files.load(content));
  EXPECT_EQ(one["time"]["images"], 64'000);
  EXPECT_EQ(one["time"]["steps"], 1'000);  // twice the batch buys no step
  EXPECT_THAT(one["provenance"]["warnings"], Contains(HasSubstr("FID 10 takes 6.4e+04 images at a batch of 64")));
  EXPECT_NE(one["provenance"]["scenario_hash"], two["provenance"]["scenario_hash"]);
  content["workload"]["quality"]["fid"] = 1;
  EXPECT_THROW(files.load(content), ConfigError);
  files.folder().add("curve.json",
                     R"({ "schema": "ganymede.quality/1", "model": "other", "dataset": "d", "features": "f",
    "curves": [ { "batch": 64, "points": [ { "images": 6400, "fid": 1, "inception_score": 1 } ] } ] })");
  EXPECT_THROW(files.load(content), ConfigError);
}

TEST(AListOfLayers, IsATraceByName) {
  Json content = ScenarioFiles::with("/workload/trace", "layers:pix2pix");
  content["workload"]["batch_per_gpu"] = 4;
  const Json run = simulate_json(ScenarioFiles().load(content));
  EXPECT_EQ(run["provenance"]["inputs"], "datasheet");
  content["workload"]["trace"] = "layers:pix2pix:fp16";
  EXPECT_EQ(ScenarioFiles().load(content).trace->precision, "fp16");
  for (const char* wrong : {"layers:pix3pix", "layers:pix2pix:fp8"}) {
    content["workload"]["trace"] = wrong;
    EXPECT_THROW(ScenarioFiles().load(content), ConfigError) << wrong;
  }
}

TEST(APlatform, MayStandInTheScenario) {
  Json content = ScenarioFiles::basic();
  const Json named = simulate_json(ScenarioFiles().load(content));
  content["platform"]["catalog"] = Json::parse(made_up_platform());
  const Json inside = simulate_json(ScenarioFiles().load(content));
  EXPECT_EQ(inside["time"]["total_s"], named["time"]["total_s"]);
  EXPECT_EQ(inside["cost"]["total_usd"], named["cost"]["total_usd"]);
  content["platform"]["catalog"]["gpus"]["GPU-X"].erase("memory");
  EXPECT_THROW(ScenarioFiles().load(content), ConfigError);
}

TEST(MeasuredLinks, SayWhenGradientsAreBeyondThem) {
  const ScenarioFiles files;
  Json content = ScenarioFiles::basic();
  content["platform"]["overlay"] = "overlay.json";
  const auto warnings = [&](double smallest, double largest) {
    files.folder().add("overlay.json", Json{{"schema", "ganymede.overlay/1"},
                                            {"platform", Json::object()},
                                            {"fit", {{"rows", {{{"bytes", smallest}}, {{"bytes", largest}}}}}}}
                                           .dump());
    return simulate_json(files.load(content))["provenance"]["warnings"];
  };
  EXPECT_THAT(warnings(4096, 1e6), Contains(HasSubstr("beyond the 4 KiB to")));
  EXPECT_THAT(warnings(1e6, 1e9), testing::Not(Contains(HasSubstr("were measured with"))));
}

// The step on the other device has an interval, and what was simulated without it does not change what follows.
TEST(RunsWithoutIntervals, TakeAndCostTheSame) {
  traces::StepTrace trace = constant_trace(4);
  trace.device.kind = "cpu";
  Json content = ScenarioFiles::basic();
  content["platform"] = {{"catalog", "lab.json"}, {"instance", "other"}, {"nodes", 2}};
  const Scenario scenario = ScenarioFiles(trace).load(content);
  StepDistributionCache cache;
  const Result without = simulate(scenario, cache, /*intervals=*/false);
  const Result later = simulate(scenario, cache), alone = simulate(scenario);
  for (const Result* run : {&without, &later}) {
    EXPECT_EQ(run->total, alone.total);
    EXPECT_EQ(run->bill.total(), alone.bill.total());
    EXPECT_EQ(run->step_mean, alone.step_mean);
  }
  EXPECT_EQ(later.interval_s.low, alone.interval_s.low);
  EXPECT_EQ(later.interval_s.high, alone.interval_s.high);
  EXPECT_LT(without.interval_s.high - without.interval_s.low, alone.interval_s.high - alone.interval_s.low);
}

}  // namespace
}  // namespace ganymede::sim
