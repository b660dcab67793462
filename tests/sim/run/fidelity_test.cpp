// Both fidelities must give the same answer.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "common/random.hpp"
#include "scenario_files.hpp"
#include "support/when.hpp"

namespace ganymede::sim {
namespace {
Json at_fidelity(Json content, const char* mode, std::uint64_t seed = 1) {
  content["fidelity"]["mode"] = mode;
  content["seed"] = seed;
  return content;
}

double total(const Json& run) { return run["time"]["total_s"].get<double>(); }

class Schemes : public testing::TestWithParam<const char*> {};

TEST_P(Schemes, AgreeOnAConstantTrace) {
  const ScenarioFiles files;
  Json content = ScenarioFiles::with("/workload/steps", 50);
  content["synchronization"]["scheme"] = GetParam();
  content["platform"]["nodes"] = 4;
  const Json message = simulate_json(files.load(at_fidelity(content, "message")));
  const Json sampled = simulate_json(files.load(at_fidelity(content, "sampled")));
  EXPECT_NEAR(total(sampled) / total(message), 1, 1e-9);
  EXPECT_EQ(message["time"]["steps_simulated"], 50);
  EXPECT_EQ(message["time"]["fidelity"], "message");
  EXPECT_EQ(sampled["time"]["fidelity"], "sampled");
  EXPECT_NEAR(sampled["time"]["sampling_interval_s"][0].get<double>() / total(sampled), 1, 1e-9);
  EXPECT_NEAR(sampled["time"]["sampling_interval_s"][1].get<double>() / total(sampled), 1, 1e-9);
}

INSTANTIATE_TEST_SUITE_P(All, Schemes, testing::Values("ring", "hierarchical-copy", "reduce-to-one"));

TEST(Fidelity, AgreesOnATransferredTrace) {
  const ScenarioFiles files;
  Json content = ScenarioFiles::with("/workload/steps", 50);
  content["platform"] = {{"catalog", "lab.json"}, {"instance", "other"}, {"nodes", 2}};
  const Json message = simulate_json(files.load(at_fidelity(content, "message")));
  const Json sampled = simulate_json(files.load(at_fidelity(content, "sampled")));
  EXPECT_NEAR(total(sampled) / total(message), 1, 1e-9);
}

// Buckets of unlike sizes on 16 nodes: the rank whose rounds are checked for repetitions leaves one call and waits for
// the next at the same moment at which it entered its last round.
TEST(Fidelity, AgreesWhereCallsFollowEachOther) {
  const ScenarioFiles files;
  Json content =
      ScenarioFiles::with("/workload", {{"trace", "recorded:dcgan-64-cpu"}, {"batch_per_gpu", 128}, {"steps", 4}});
  content["platform"] = {
      {"catalog", "azure"}, {"region", "eastus"}, {"instance", "Standard_NC40ads_H100_v5"}, {"nodes", 16}};
  content["synchronization"]["scheme"] = "nccl";
  const Json message = simulate_json(files.load(at_fidelity(content, "message")));
  const Json sampled = simulate_json(files.load(at_fidelity(content, "sampled")));
  EXPECT_NEAR(sampled["time"]["step_mean_s"].get<double>() / message["time"]["step_mean_s"].get<double>(), 1, 1e-6);
}

/// 120 steps of 10 ms on average that vary by 20 %, with correlation 0.7 between neighbours.
traces::StepTrace jittered(std::uint64_t seed = 3) {
  RandomStream random(seed, "test/jitter");
  std::vector<double> scale;
  double state = random.normal();
  for (int i = 0; i < 120; ++i) {
    scale.push_back(1e-3 * std::max(0.2, 1 + 0.2 * state));
    state = 0.7 * state + std::sqrt(1 - 0.7 * 0.7) * random.normal();
  }
  return made_up_trace(scale);
}

// Compares runs of 400 steps, simulated message by message with seeds of their own, with the sampled intervals, which
// should hold in 95 % of cases. Fewer than 35 of 40 would then have a probability of 1.4 %; the seeds are fixed.
TEST(Fidelity, TheSamplingIntervalHoldsAsOftenAsItSays) {
  NOT_SANITIZED("looks at shares of thousands of runs");
  constexpr std::size_t kTrials = 40;
  std::vector<Scenario> scenarios;
  for (std::size_t i = 0; i < 2 * kTrials; ++i) {
    // Each pair of runs has a trace of its own, because all runs of a scenario share the sample and with it its error.
    const ScenarioFiles files(jittered(i / 2));
    const Json content = ScenarioFiles::with("/workload/steps", 400);
    scenarios.push_back(files.load(at_fidelity(content, i % 2 == 0 ? "message" : "sampled", i)));
  }
  simgrid_module();  // once for all children
  const auto texts =
      run_children(2 * kTrials, 2, [&](std::size_t i) { return documents::result_text(simulate(scenarios[i])); });
  int held = 0;
  for (std::size_t i = 0; i < 2 * kTrials; i += 2) {
    rethrow(texts[i]);
    rethrow(texts[i + 1]);
    const Json message = Json::parse(texts[i].text);
    const Json sampled = Json::parse(texts[i + 1].text);
    const auto& interval = sampled["time"]["sampling_interval_s"];
    held += interval[0].get<double>() <= total(message) && total(message) <= interval[1].get<double>();
  }
  RecordProperty("held", held);
  EXPECT_GE(held, 35) << "of " << kTrials;
}

TEST(Fidelity, JitterCostsStragglersAndIsBounded) {
  const ScenarioFiles files(jittered());
  const Json run = simulate_json(files.load(ScenarioFiles::with("/platform/nodes", 8)));
  EXPECT_GT(run["gpu_seconds"]["straggler"].get<double>(), 0);
  const auto& all = run["time"]["interval_s"];
  const auto& sampling = run["time"]["sampling_interval_s"];
  // The stated error includes that of sampling and that of the trace's finite length.
  EXPECT_LT(all[0].get<double>(), sampling[0].get<double>());
  EXPECT_LT(sampling[0].get<double>(), total(run));
  EXPECT_LT(total(run), sampling[1].get<double>());
  EXPECT_LT(sampling[1].get<double>(), all[1].get<double>());
}

}  // namespace
}  // namespace ganymede::sim
