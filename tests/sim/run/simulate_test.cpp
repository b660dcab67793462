// Runs whose time, ledger and bill are calculated by hand: a constant step of 10 ms, a boot of 90 s, 3.60 USD/h.

#include "sim/run/simulate.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "calibration/interval_classes.hpp"
#include "calibration/statistics.hpp"
#include "common/errors.hpp"
#include "common/units.hpp"
#include "scenario_files.hpp"
#include "support/errors.hpp"

namespace ganymede::sim {
namespace {

using testing::HasSubstr;

using namespace literals;
constexpr double kStep = 10e-3;
constexpr std::int64_t kSteps = 1000;

Json one_worker() { return ScenarioFiles::with("/platform/nodes", 1); }

TEST(Simulate, OneWorkerTakesBootAndItsSteps) {
  const Json run = simulate_json(ScenarioFiles().load(one_worker()));
  EXPECT_NEAR(number(run, "/time/total_s"), kBoot + kSteps * kStep, 1e-9);
  EXPECT_NEAR(number(run, "/time/step_mean_s"), kStep, 1e-12);
  EXPECT_EQ(run["time"]["steps"], kSteps);
  EXPECT_EQ(run["time"]["images"], kSteps * 64);
  EXPECT_EQ(run["run"]["scheme"], "none");
  EXPECT_EQ(run["provenance"]["inputs"], "measured");
  // A trace without jitter has no sampling error; what remains is the drift between two runs.
  const double drift = 1.96 * std::sqrt(2.0) * calibration::kRunDrift;
  EXPECT_NEAR(number(run, "/time/interval_s/0"), kBoot + (1 - drift) * kSteps * kStep, 1e-6);
  EXPECT_NEAR(number(run, "/time/interval_s/1"), kBoot + (1 + drift) * kSteps * kStep, 1e-6);
}

TEST(Simulate, OneWorkersUseOfItsHardware) {
  const Json run = simulate_json(ScenarioFiles().load(one_worker()));
  constexpr double kTotal = kBoot + kSteps * kStep;  // 100 s
  EXPECT_NEAR(number(run, "/gpu_seconds/compute"), kSteps * kStep, 1e-6);
  EXPECT_NEAR(number(run, "/gpu_seconds/provisioning"), kBoot, 1e-9);
  constexpr double kBusy = kSteps * 9e-3 / kTotal;  // of a step's 10 ms its phases take 9, the rest are gaps
  EXPECT_NEAR(number(run, "/utilization/gpu_busy"), kBusy, 1e-9);
  EXPECT_NEAR(number(run, "/utilization/gpu_flops"), 9e9 * kSteps / (10e12 * kTotal), 1e-12);  // 9 GFLOP a step
  EXPECT_NEAR(number(run, "/utilization/cpu"), 0.25 * 9e-3 * kSteps / (8 * kTotal), 1e-12);    // of 8 vCPUs
  EXPECT_EQ(number(run, "/utilization/network"), 0);
  EXPECT_EQ(number(run, "/utilization/memory_bytes"), 116e6);
  // 50 W idle, 250 W at peak, PUE 1.5, 400 g/kWh.
  const double kwh = (50 + 200 * kBusy) * kTotal * 1.5 / 3.6e6;
  EXPECT_NEAR(number(run, "/energy/kwh"), kwh, 1e-9);
  EXPECT_NEAR(number(run, "/energy/kg_co2e"), kwh * 0.4, 1e-9);
  // The bounds have the same power over the bounds of the time.
  for (const char* end : {"0", "1"}) {
    const double times = number(run, (std::string("/time/interval_s/") + end).c_str()) / kTotal;
    EXPECT_NE(times, 1);
    EXPECT_NEAR(number(run, (std::string("/energy/kwh_interval/") + end).c_str()), kwh * times, 1e-9);
    EXPECT_NEAR(number(run, (std::string("/energy/kg_co2e_interval/") + end).c_str()), kwh * 0.4 * times, 1e-9);
  }
}

TEST(Simulate, SaysWhatItLeavesOut) {
  for (const char* every : {"10min", "1epoch", "daly"}) {
    const Json run = simulate_json(ScenarioFiles().load_with("/checkpoint", {{"every", every}}));
    EXPECT_THAT(run["provenance"]["warnings"].dump(), HasSubstr("no checkpoints are written"));
  }
}

TEST(Simulate, OneWorkersBill) {
  const Json run = simulate_json(ScenarioFiles().load(one_worker()));
  // 100 s at 3.60 USD/h are 0.10 USD.
  EXPECT_EQ(run["cost"]["total_usd"], "0.10");
  ASSERT_EQ(run["cost"]["items"].size(), 1U);
  const Json& item = run["cost"]["items"][0];
  EXPECT_EQ(item["item"], "instance-hours");
  EXPECT_EQ(item["pool"], "one room-1 on-demand");
  EXPECT_NEAR(item["quantity"].get<double>(), 100.0 / 3600, 1e-12);
  EXPECT_EQ(item["unit_price_usd"], "3.60");
  EXPECT_EQ(item["usd"], "0.10");
}

/// One all-reduce of the made-up platform's one-GPU nodes: 10 Gbit/s, 20 + 1 + 20 us.
double ring(int ranks, std::int64_t bytes) {
  return find_scheme("ring")
      .on_star({flat(ranks), bytes, Collective::all_reduce, ""}, {10_Gbit_per_s, 41_us, 900_GB_per_s})
      .si;
}

class OnAStar : public testing::TestWithParam<int> {
 protected:
  Json run(bool overlap) const {
    Json content = ScenarioFiles::with("/platform/nodes", GetParam());
    content["synchronization"]["overlap"] = overlap;
    return simulate_json(ScenarioFiles().load(content));
  }
};

TEST_P(OnAStar, WithoutOverlapAllReductionsAddToTheStep) {
  const int n = GetParam();
  const double exposed = ring(n, 4'000'000) + ring(n, 8'400'000) + ring(n, 3'600'000);
  const Json result = run(false);
  EXPECT_NEAR(number(result, "/time/total_s") / (kBoot + kSteps * (kStep + exposed)), 1, 1e-6);
  EXPECT_NEAR(number(result, "/gpu_seconds/exposed_communication") / (n * kSteps * exposed), 1, 1e-6);
  EXPECT_NEAR(number(result, "/gpu_seconds/compute") / (n * kSteps * kStep), 1, 1e-6);
  EXPECT_NEAR(number(result, "/gpu_seconds/straggler"), 0, 1e-6);
}

// The discriminator's bucket comes at the end of its backward pass and is entirely exposed. The generator's first
// bucket is ready half way through a pass of 4 ms; the second is reduced when the pass has ended and the first is done.
TEST_P(OnAStar, WithOverlapTheFirstHalfOfTheGeneratorsGradientsHides) {
  const int n = GetParam();
  const double exposed = ring(n, 4'000'000) + std::max(0.0, ring(n, 8'400'000) - 2e-3) + ring(n, 3'600'000);
  const Json result = run(true);
  EXPECT_NEAR(number(result, "/time/total_s") / (kBoot + kSteps * (kStep + exposed)), 1, 1e-6);
  EXPECT_NEAR(number(result, "/gpu_seconds/exposed_communication") / (n * kSteps * exposed), 1, 1e-6);
}

// Each rank sends 2 (n-1)/n of the 16 MB of a step.
TEST_P(OnAStar, TheBusiestLinkIsUsedForWhatARankSends) {
  const int n = GetParam();
  const Json result = run(true);
  EXPECT_NEAR(number(result, "/utilization/network") * number(result, "/time/total_s"),
              kSteps * 2.0 * (n - 1) / n * 16e6 / 1.25e9, 1e-6);
}

// Billed by the second, rounded up: 0.001 USD a node and second.
TEST_P(OnAStar, EachNodeIsBilled) {
  const Json result = run(true);
  const auto seconds = static_cast<std::int64_t>(std::ceil(number(result, "/time/total_s")));
  EXPECT_EQ(result["cost"]["total_usd"], decimal(MicroUsd{GetParam() * seconds * 1000}));
}

INSTANTIATE_TEST_SUITE_P(Nodes, OnAStar, testing::Values(2, 4, 8));

TEST(Simulate, ASchemeThatCannotServeTheWorkersIsAnErrorWithItsPlace) {
  const ScenarioFiles files;
  const auto refusal = [&](const Json& synchronization) {
    const Scenario scenario = files.load(ScenarioFiles::with("/synchronization", synchronization));
    return message_of<ConfigError>([&] { simulate(scenario); });
  };
  EXPECT_THAT(refusal({{"scheme", "torus"}}), HasSubstr("scenario.json: /synchronization/scheme: scheme torus on"));
  EXPECT_THAT(refusal({{"scheme", "parameter-server"}, {"variables", {"1TB"}}}),
              HasSubstr("scenario.json: /synchronization/variables: found 1000000000000 bytes in all, expected"));
}

// 350 node-years are more nanoseconds than 64 bits count.
TEST(Simulate, ALongRunOfManyNodesIsAccountedForWhole) {
  Json scenario = ScenarioFiles::with("/platform/nodes", 8);
  scenario["workload"].erase("epochs");
  scenario["workload"]["steps"] = 40'000'000'000;
  const Json run = simulate_json(ScenarioFiles().load(scenario));
  const double total = number(run, "/time/total_s");
  EXPECT_GT(8 * total, 292.0 * 365 * 86400);
  EXPECT_NEAR(number(run, "/gpu_seconds/total"), 8 * total, 1e-9 * 8 * total);
  EXPECT_NEAR(std::stod(run["cost"]["total_usd"].get<std::string>()), 8 * total * 0.001, 2);
  EXPECT_LT(number(run, "/energy/kwh_interval/0"), number(run, "/energy/kwh"));
  EXPECT_LT(number(run, "/energy/kwh"), number(run, "/energy/kwh_interval/1"));
}

TEST(Simulate, UnusedGpusOfARentedInstanceAreIdleAndPaidFor) {
  Json content = ScenarioFiles::basic();
  content["platform"] = {{"catalog", "lab.json"}, {"instance", "four"}, {"gpus_per_node", 1}};
  const Json run = simulate_json(ScenarioFiles().load(content));
  EXPECT_NEAR(number(run, "/gpu_seconds/idle"), 3 * kSteps * kStep, 1e-6);
  EXPECT_NEAR(number(run, "/gpu_seconds/provisioning"), 4 * kBoot, 1e-6);
  EXPECT_NEAR(number(run, "/gpu_seconds/total"), 4 * (kBoot + kSteps * kStep), 1e-6);
  EXPECT_EQ(run["cost"]["total_usd"], "0.30");  // 100 s at 10.80 USD/h
}

/// The trace as if it was recorded on a processor, which says nothing about the efficiency of a GPU.
traces::StepTrace on_a_processor(traces::StepTrace trace) {
  trace.device.kind = "cpu";
  return trace;
}

// GPU-Y is another device: 20 TFLOP/s, 1800 GB/s, launches of 4 us. Each unit of a phase is 1 GFLOP and 3 MB in 10
// launches, so FLOPs limit the central model at half of the peak (100 us a unit against 40 us a phase), and the low one
// at full peak (50 us). The high one is the sum of times at 15 % of the peak, at 40 % of the bandwidth, and of 9.6 /
// 3.8 launches.
TEST(Simulate, AnotherDeviceIsBoundedByTheRoofline) {
  Json content = one_worker();
  content["platform"] = {{"catalog", "lab.json"}, {"instance", "other"}, {"nodes", 1}};
  const Json run = simulate_json(ScenarioFiles(on_a_processor(constant_trace(4))).load(content));
  constexpr double kUnits = 3 + 1 + 4 + 1;
  const double high = kUnits * (1e9 / (20e12 * 0.15) + 3e6 / (1800e9 * 0.4)) + 4 * 10 * 4e-6 * 9.6 / 3.8;
  EXPECT_NEAR(number(run, "/time/total_s"), kBoot + kSteps * kUnits * 100e-6, 1e-6);
  EXPECT_NEAR(number(run, "/time/interval_s/0"), kBoot + kSteps * kUnits * 50e-6, 1e-6);
  EXPECT_NEAR(number(run, "/time/interval_s/1"), kBoot + kSteps * high, 1e-6);
  EXPECT_EQ(run["provenance"]["inputs"], "transferred");
  EXPECT_THAT(run["provenance"]["steps"].get<std::string>(), HasSubstr("roofline"));
  EXPECT_FALSE(run["provenance"]["warnings"].empty());
}

// The clock counts 292 years. The run takes 143, and nearly four times as long by the high bound of its steps.
TEST(Simulate, AnIntervalBeyondTheClockIsRefused) {
  Json content = one_worker();
  content["platform"] = {{"catalog", "lab.json"}, {"instance", "other"}, {"nodes", 1}};
  content["workload"].erase("epochs");
  content["workload"]["steps"] = 1'000'000'000'000;
  traces::StepTrace trace = on_a_processor(constant_trace(4));
  for (traces::TracePhase& phase : trace.batches.front().phases) phase.flops *= 5, phase.bytes_read *= 5;
  const ScenarioFiles files(trace);
  EXPECT_THAT(
      message_of<ConfigError>([&] { simulate(files.load(content)); }),
      testing::ContainsRegex("scenario.json: the run would take 12[0-9]* h, and up to 4[0-9]* h by its interval"));
}

TEST(Simulate, ARunsCostDoesNotGrowWithItsSteps) {
  const ScenarioFiles files;
  const Json run = simulate_json(files.load_with("/workload/steps", 1'000'000'000));
  EXPECT_LT(number(run, "/time/steps_simulated"), 10'000);
  const double step = number(simulate_json(files.load(ScenarioFiles::basic())), "/time/step_mean_s");
  EXPECT_NEAR(number(run, "/time/total_s") / (kBoot + 1e9 * step), 1, 1e-9);
}

// Three stages of 1 ms each before a step of 0.9 ms, with room for two batches ahead: a batch enters when the batch
// before the previous one is taken, so two arrive every 3 ms, in unequal steps that alternate and never settle to one
// length.
TEST(Simulate, ARunsCostDoesNotGrowWhereStepsAlternate) {
  traces::StepTrace trace = constant_trace(2);
  auto& phases = trace.batches.front().phases;
  for (const char* name : {"read", "decode", "crop"}) {
    traces::TracePhase stage = made_up_phase(name, "", 0.5, 1, std::vector<double>(2, 1e-3));
    stage.stream = "host";
    stage.bytes_written = 0;
    phases.insert(phases.begin(), stage);
  }
  Json content = ScenarioFiles::with("/workload/steps", 1'000'000);
  content["platform"] = {{"catalog", "lab.json"}, {"instance", "other"}, {"nodes", 1}};
  const Json run = simulate_json(ScenarioFiles(on_a_processor(trace)).load(content));
  EXPECT_LT(number(run, "/time/steps_simulated"), 10'000);
  EXPECT_NEAR(number(run, "/time/step_mean_s"), 1.5e-3, 1e-6);
}

// Two nodes whose steps are 10 ms of work and an exchange that nothing hides.
Json exchanging(const Json& nic, std::int64_t steps) {
  const ScenarioFiles files;
  Json platform = Json::parse(made_up_platform());
  platform["instances"]["one"]["nic"] = nic;
  platform["instances"]["one"]["nic"]["latency"] = "20us";
  files.folder().add("lab.json", platform.dump());
  Json content = ScenarioFiles::with("/workload/steps", steps);
  content["synchronization"] = {{"scheme", "ring"}, {"overlap", false}};
  return simulate_json(files.load(content));
}

// A step that sends at 10 Gbit/s for the share u of its time spends 10 u - 1 of the 10 - 1 Gbit/s for which full
// credits last Nic::kFullBurst; all further steps are those of 1 Gbit/s.
TEST(Simulate, NicsBurstUntilTheirCreditsAreUsedUp) {
  constexpr std::int64_t kMany = 200'000;
  const Json fast = exchanging({{"bandwidth", "10Gbit/s"}}, kMany),
             slow = exchanging({{"bandwidth", "1Gbit/s"}}, kMany);
  const Json both = exchanging({{"bandwidth", "1Gbit/s"}, {"burst", "10Gbit/s"}}, kMany);
  const double fast_s = number(fast, "/time/step_mean_s"), slow_s = number(slow, "/time/step_mean_s");
  const double busy = number(fast, "/utilization/network") * number(fast, "/time/total_s") / (kMany * fast_s);
  const double burst_s = platforms::Nic::kFullBurst.si * 9 / (10 * busy - 1);
  EXPECT_GT(burst_s, 1000);
  EXPECT_NEAR(number(both, "/time/total_s"), kBoot + burst_s + (kMany - burst_s / fast_s) * slow_s, slow_s);
  EXPECT_THAT(both["events"].dump(), HasSubstr("network credits used up"));
  EXPECT_THAT(both["provenance"]["warnings"].dump(), HasSubstr("NICs of one send 1.25 GB/s while their credits last"));
  // A run of some minutes is all burst, and one worker exchanges nothing.
  EXPECT_EQ(exchanging({{"bandwidth", "1Gbit/s"}, {"burst", "10Gbit/s"}}, 1000)["time"]["step_mean_s"],
            exchanging({{"bandwidth", "10Gbit/s"}}, 1000)["time"]["step_mean_s"]);
}

// The interval is what `validate` states of steps of several machines, where that is more than two runs differ by.
TEST(Simulate, SeveralWorkersAddTheErrorOfTheirLinks) {
  const Json run = exchanging({{"bandwidth", "1Gbit/s"}}, kSteps);
  const double training = kSteps * number(run, "/time/step_mean_s");
  const double width =
      calibration::half_width({.link = calibration::LinkEvidence::datasheet,
                               .eager = false,
                               .several_machines = true,
                               .collectives = number(run, "/gpu_seconds/exposed_communication") / (2 * training)});
  EXPECT_GT(width, 0.2);
  // The width is a factor's, so that no training takes less than no time.
  const double factor = std::exp(width * 1.96 / 1.645);
  EXPECT_NEAR(number(run, "/time/interval_s/0"), kBoot + training / factor, 1e-6);
  EXPECT_NEAR(number(run, "/time/interval_s/1"), kBoot + training * factor, 1e-6);
}

}  // namespace
}  // namespace ganymede::sim
