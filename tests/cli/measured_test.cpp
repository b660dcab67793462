// "I measured it": a step of one's own in place of a trace, of simulate, sweep and plan.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/json_value.hpp"
#include "run_program.hpp"

namespace ganymede::cli {
namespace {

using testing::AllOf;
using testing::HasSubstr;
/// A scenario on one RTX 3090 of one's own, which needs no boot, for 100 steps.
class MeasuredStep : public testing::Test {
 protected:
  MeasuredStep() {
    scratch_.write("mine.json", R"({ "schema": "ganymede.platform/1",
      "gpus": { "RTX3090": { "memory": "24GiB", "fp32": "35.6Tflop/s", "memory_bandwidth": "936GB/s" } },
      "instances": { "box": { "gpu": "RTX3090", "gpus": 1, "prices": [
        { "region": "home", "market": "on-demand", "per_hour": "0.10USD/h", "as_of": "undated" } ] } } })");
    scenario_ = scratch_.write("scenario.json", R"({ "schema": "ganymede.scenario/1",
      "workload": { "trace": "layers:cyclegan", "batch_per_gpu": 4, "steps": 100 },
      "platform": { "catalog": "mine.json", "instance": "box" },
      "synchronization": { "scheme": "ring" }, "seed": 1 })");
  }
  Outcome simulate(const std::string& flags) const { return run_program("simulate " + scenario_ + " " + flags); }
  Scratch scratch_;
  std::string scenario_;
};

TEST_F(MeasuredStep, DecidesTheTimeOfARun) {
  const Outcome outcome = simulate("--step 0.8s --batch 4 --on RTX3090 --format json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json run = Json::parse(outcome.out);
  EXPECT_NEAR(run["time"]["total_s"].get<double>(), 80, 1e-3);  // 100 steps of 0.8 s
  EXPECT_EQ(run["provenance"]["inputs"], "measured (stated by the user)");
  // 10 % of the statement and 14 % between runs.
  EXPECT_LT(run["time"]["interval_s"][0], 70);
  EXPECT_GT(run["time"]["interval_s"][1], 90);
  const Json rate = Json::parse(simulate("--images-per-second 5 --batch 4 --on RTX3090 --format json").out);
  EXPECT_NEAR(rate["time"]["total_s"].get<double>(), 80, 1e-3);
}

TEST_F(MeasuredStep, ScalesWhatAPlanTakesOnOtherGpus) {
  const auto hours = [](const std::string& step) {
    const Outcome outcome = run_program(
        "plan --model cyclegan --images 400000 --catalog aws --instance p3.2xlarge --region us-east-1 "
        "--market on-demand --max-gpus 1 --seeds 1 --batch 4 --on RTX3090 --format json --step " +
        step);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    const Json plan = Json::parse(outcome.out);
    EXPECT_EQ(plan["chosen"]["inputs"], "transferred");
    EXPECT_THAT(plan["steps"][0]["how"].get<std::string>(), HasSubstr("stated by the user"));
    return plan["steps"][0]["seconds"].get<double>();
  };
  const double once = hours("0.5s");
  EXPECT_NEAR(hours("1s") / once, 2, 1e-6);
}

TEST_F(MeasuredStep, IsTakenBySweeps) {
  const std::string study = scratch_.write("study.json", R"({ "schema": "ganymede.study/1", "name": "s",
    "workload": { "trace": "layers:cyclegan", "batch_per_gpu": 4, "steps": 100 },
    "platforms": [ { "catalog": "mine.json", "region": "home", "instance": "box" } ], "gpus": [1], "schemes": ["ring"], "seeds": [1] })");
  const Outcome outcome = run_program("sweep " + study + " --step 0.8s --batch 4 --on RTX3090 --format json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NEAR(Json::parse(outcome.out)["runs"][0]["time"]["total_s"].get<double>(), 80, 1e-3);
}

TEST_F(MeasuredStep, NamesWhatIsWrong) {
  const auto refused = [&](const std::string& flags, const char* why) {
    const Outcome outcome = simulate(flags);
    EXPECT_EQ(outcome.code, 2) << flags;
    EXPECT_THAT(outcome.err, HasSubstr(why)) << flags;
  };
  refused("--step 0s --batch 4 --on RTX3090", "/workload/measured/step: found \"0s\"");
  refused("--step 0.8 --batch 4 --on RTX3090", "/workload/measured/step");
  refused("--step 0.8s --batch 4 --on RTX3900", "did you mean \"RTX3090\"?");
  refused("--step 0.8s --batch 4", "expected --on GPU");
  refused("--step 0.8s --on RTX3090", "expected --batch");
  refused("--step 0.8s --images-per-second 5 --batch 4 --on RTX3090", "only one of the two");
  refused("--on RTX3090", "expected --step");
  refused(R"(--set '/workload/measured={"step":"0.8s","batch":8,"gpu":"RTX3090"}')",
          "found 4 images a pass, but the \"measured\" step is of 8");
}

// The cards that people have at home: nobody rents them out, so that they cost electricity.
TEST(LocalCatalog, TakesAPlanOnACardOfOnesOwn) {
  const auto plan = [](const std::string& gpu) {
    return run_program(
        "plan --model 'stylegan2?image=256' --images 100k --step 0.3s --batch 16 --catalog local --max-gpus 1 --seeds "
        "1 "
        "--instance RTX3090 --format json --on " +
        gpu);
  };
  const Outcome outcome = plan("RTX3090");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json chosen = Json::parse(outcome.out)["chosen"];
  EXPECT_EQ(chosen["instance"], "RTX3090");
  EXPECT_EQ(Json::parse(outcome.out)["request"]["model"], "stylegan2-256");
  // 100,000 images at 16 in 0.3 s are 0.52 h; 350 W of the card and up to 150 W of the host at 0.20 USD/kWh.
  EXPECT_NEAR(chosen["time_s"]["median"].get<double>(), 100'000 / 16 * 0.3, 2);
  EXPECT_GT(chosen["usd"]["median"].get<double>(), 0.005);
  EXPECT_LT(chosen["usd"]["median"].get<double>(), 0.2 * 0.5 * 0.53);
  EXPECT_EQ(Json::parse(plan("3090").out)["chosen"]["usd"], chosen["usd"]) << "people leave out the series";
}

TEST(LocalCatalog, HasTheCardsOfTheKernelModel) {
  for (const char* gpu : {"RTX3060", "RTX3090", "RTX4090", "4080", "1080Ti"})
    EXPECT_EQ(run_program(std::string("kernels --model dcgan --batch 64 --gpu ") + gpu).code, 0) << gpu;
  const Json rows = Json::parse(run_program("catalog --provider local --gpu RTX4090 --format json").out);
  EXPECT_EQ(rows.size(), 3U) << "with one, two and four cards";
  EXPECT_EQ(rows[0]["usd_per_hour"], "0.00");
}

TEST(ExampleLayers, CanBeImportedAndCountTheDcgan) {
  const Scratch scratch;
  const std::string layers = scratch.write("layers.json", run_program("example layers").out);
  const std::string trace = (scratch / "trace.json").string();
  const Outcome outcome = run_program("import layers " + layers + " --batch 64 -o " + trace);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json networks = Json::parse(content_of(trace))["networks"];
  // Weights of 4 x 4 convolutions, and a scale and a shift for each channel that is normalised.
  const int generator = 16 * (100 * 512 + 512 * 256 + 256 * 128 + 128 * 64 + 64 * 3) + 2 * (512 + 256 + 128 + 64);
  const int discriminator = 16 * (3 * 64 + 64 * 128 + 128 * 256 + 256 * 512 + 512) + 2 * (128 + 256 + 512);
  EXPECT_EQ(networks["generator"]["parameters"], generator);
  EXPECT_EQ(networks["discriminator"]["parameters"], discriminator);
}

}  // namespace
}  // namespace ganymede::cli
