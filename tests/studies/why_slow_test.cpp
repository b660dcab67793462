// Causes of slow trainings on several GPUs, from two rates. The published rates are those of machines on which nothing
// is wrong; the others follow from what is left of a link or a processor.

#include "studies/why_slow.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/errors.hpp"
#include "common/json_value.hpp"
#include "support/temporary_folder.hpp"

namespace ganymede::studies {
namespace {

using testing::HasSubstr;

WhySlowOptions asked(int gpus, const std::string& gpu, const std::string& one, const std::string& all) {
  WhySlowOptions options;
  options.gpus = gpus, options.gpu = gpu, options.one = one, options.all = all;
  return options;
}

std::string refusal(const WhySlowOptions& options) {
  try {
    (void)why_slow(options);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

double probability(const documents::WhySlow& answer, const std::string& cause) {
  for (const documents::SlowCause& one : answer.causes)
    if (one.cause == cause) return one.probability;
  return 0;
}

// ResNet-50 v1.5 on DGX A100 (TF32) and DGX-1 (FP32), 1 and 8 GPUs: NVIDIA/DeepLearningExamples,
// PyTorch/Classification/ConvNets/resnet50v1.5/README.md at 291f0d02e815.
TEST(WhySlow, LeavesNormalScalingAlone) {
  for (WhySlowOptions options : {asked(8, "A100-80GB", "938img/s", "7248img/s"), asked(8, "V100", "367", "2855")}) {
    options.parameters = 25'557'032, options.batch = 128;
    const documents::WhySlow answer = why_slow(options);
    EXPECT_EQ(answer.verdict, "as expected") << answer.expected;
    EXPECT_EQ(answer.causes.front().cause, "normal");
    double all = 0;
    for (const documents::SlowShare& share : answer.shares) all += share.share;
    EXPECT_NEAR(all, 1, 1e-9);
  }
}

TEST(WhySlow, RatesAreReadAsPeopleWriteThem) {
  EXPECT_DOUBLE_EQ(rate_of("--one", "250img/s", 64), 250);
  EXPECT_DOUBLE_EQ(rate_of("--one", "250", 64), 250);
  EXPECT_DOUBLE_EQ(rate_of("--one", "1k", 64), 1000);
  EXPECT_DOUBLE_EQ(rate_of("--one", "1.5kimg/s", 64), 1500);
  EXPECT_DOUBLE_EQ(rate_of("--one", "4s/kimg", 64), 250);
  EXPECT_DOUBLE_EQ(rate_of("--one", "2 it/s", 64), 128);
  EXPECT_DOUBLE_EQ(rate_of("--one", "0.5s/it", 64), 128);
  EXPECT_DOUBLE_EQ(rate_of("--one", "500ms/step", 64), 128);
  for (const char* bad : {"", "fast", "2 epochs", "-3img/s", "0it/s", "nan", "4ks/kimg"})
    EXPECT_THROW((void)rate_of("--one", bad, 64), ConfigError) << bad;
  EXPECT_DOUBLE_EQ(rate_of("--one", "25s/epoch", 64, 50'000), 2000);
  EXPECT_DOUBLE_EQ(rate_of("--one", "2h", 64, 7'200'000), 1000);
  for (const char* bad : {"90m", "1e-310s", "1e300h"})
    EXPECT_THROW((void)rate_of("--one", bad, 64, 50'000), ConfigError) << bad;
  EXPECT_EQ(refusal(asked(2, "V100", "40h", "25h")), "--one 40h: --images says how many images take so long");
  // Each iteration of four GPUs takes four batches.
  WhySlowOptions iterations = asked(4, "V100", "0.5s/it", "0.5s/it"), images = asked(4, "V100", "64", "256");
  iterations.batch = images.batch = 32;
  EXPECT_EQ(why_slow(iterations).all, why_slow(images).all);
}

// Horovod starts one process for each GPU, and images that are made up are not read.
TEST(WhySlow, WhatIsKnownOfATrainingRulesCausesOut) {
  WhySlowOptions options = asked(8, "V100", "250img/s", "700img/s");
  EXPECT_GT(probability(why_slow(options), "single-process"), 0);
  EXPECT_GT(probability(why_slow(options), "input"), 0);
  const double before = probability(why_slow(options), "single-process");
  options.launcher = "one-process";
  EXPECT_GT(probability(why_slow(options), "single-process"), before);
  options.launcher = "processes", options.synthetic = true;
  EXPECT_EQ(probability(why_slow(options), "single-process"), 0);
  EXPECT_EQ(probability(why_slow(options), "input"), 0);
}

// A mean of two images varies more than one of 64.
TEST(WhySlow, FewImagesAStepMakeWorkersWait) {
  WhySlowOptions few = asked(8, "V100", "40img/s", "200img/s"), many = few;
  few.batch = 1, many.batch = 64;
  EXPECT_GT(probability(why_slow(few), "stragglers"), probability(why_slow(many), "stragglers"));
}

// What one GPU trains ten times as fast as ResNet-50 is smaller, unless its size is said.
TEST(WhySlow, GradientsOfAFastTrainingAreTakenToBeFewer) {
  const documents::WhySlow slow = why_slow(asked(2, "V100", "100img/s", "190img/s")),
                           fast = why_slow(asked(2, "V100", "10000img/s", "19000img/s"));
  EXPECT_EQ(slow.parameters, 25'557'032);
  EXPECT_LT(fast.parameters, 2e6);
  WhySlowOptions said = asked(2, "V100", "10000img/s", "19000img/s");
  said.parameters = 25'000'000;
  EXPECT_EQ(why_slow(said).parameters, 25e6);
}

// Ten GPUs' rate of eight is no slow training: there is nothing to explain, and no part of a step is negative.
TEST(WhySlow, LooksForNothingWhereATrainingIsFaster) {
  const documents::WhySlow answer = why_slow(asked(8, "V100", "250img/s", "2500img/s"));
  EXPECT_EQ(answer.verdict, "faster");
  ASSERT_EQ(answer.causes.size(), 1U);
  EXPECT_EQ(answer.causes.front().cause, "normal");
  double all = 0;
  for (const documents::SlowShare& share : answer.shares) {
    EXPECT_GE(share.share, 0) << share.part;
    all += share.share;
  }
  EXPECT_NEAR(all, 1, 1e-9);
}

// 4.8 of 8: a loss of 40 % where a few percent are usual. 128 threads at a hundred images each are what one machine
// prepares. Two nodes of V100 over 10 Gbit/s: 102 MB of gradients take 0.16 s, four times the step's compute.
TEST(WhySlow, NamesCausesThatFit) {
  const documents::WhySlow slow = why_slow(asked(8, "V100", "250img/s", "1200img/s"));
  EXPECT_EQ(slow.verdict, "slow");
  EXPECT_NEAR(slow.efficiency, 0.6, 1e-9);
  EXPECT_GT(*slow.causes.front().saved_hours, 0);
  EXPECT_GT(*slow.causes.front().saved_usd, 0);
  EXPECT_LT(probability(slow, "normal"), 0.2);
  EXPECT_GT(probability(slow, "single-process") + probability(slow, "no-p2p") + probability(slow, "input"), 0.3);

  WhySlowOptions input = asked(8, "A100-40GB", "2500", "8500");
  input.parameters = 25'557'032, input.batch = 256;
  const documents::WhySlow starved = why_slow(input);
  EXPECT_GT(probability(starved, "input"), 0.3);
  EXPECT_GT(probability(starved, "input"), probability(starved, "tcp-fallback"));

  WhySlowOptions network = asked(16, "V100", "370", "900");
  network.nodes = 2, network.nic = "4x100Gbit/s", network.batch = 64, network.parameters = 25'557'032;
  const documents::WhySlow over_tcp = why_slow(network);
  EXPECT_EQ(over_tcp.verdict, "slow");
  EXPECT_GT(probability(over_tcp, "tcp-fallback"), probability(over_tcp, "no-gpu-direct"));
}

TEST(WhySlow, ReadsRatesAndSaysWhatItNeeds) {
  EXPECT_DOUBLE_EQ(why_slow(asked(2, "V100", "4s/kimg", "480samples/s")).one, 250);
  EXPECT_THAT(refusal(asked(8, "V100", "fast", "1200")), HasSubstr("--one fast: expected a rate such as 250img/s"));
  EXPECT_THAT(refusal(asked(8, "V100", "0", "1200")), HasSubstr("--one 0"));
  EXPECT_THAT(refusal(asked(8, "", "250", "1200")), HasSubstr("no GPU is named; --catalog and --instance"));
  EXPECT_THAT(refusal(asked(1, "V100", "250", "1200")), HasSubstr("--gpus"));
  EXPECT_THAT(refusal(asked(8, "V100", "250", "")), HasSubstr("--one and --all"));
  EXPECT_THAT(refusal(asked(8, "V100", "250", "1e9")), HasSubstr("do both count the same images?"));
  WhySlowOptions odd = asked(9, "V100", "250", "1200");
  odd.nodes = 2;
  EXPECT_THAT(refusal(odd), HasSubstr("--nodes 2: does not divide the 9 GPUs"));
}

// Three steps of 10 ms: 6 ms of kernels, 2 ms of NCCL that nothing hides, 2 ms idle.
TEST(WhySlow, SplitsTheStepOfATrace) {
  Json events = Json::array();
  const auto span = [&](const char* category, const std::string& name, double begin, double length, int thread,
                        int id) {
    events.push_back({{"ph", "X"},
                      {"cat", category},
                      {"name", name},
                      {"ts", begin},
                      {"dur", length},
                      {"pid", category == std::string("kernel") ? 0 : 1},
                      {"tid", thread},
                      {"args", {{"correlation", id}, {"device", 0}, {"stream", 7}}}});
  };
  for (int step = 0; step < 4; ++step) {
    const double at = step * 10000.0;
    span("user_annotation", "ProfilerStep#" + std::to_string(step), at, 10000, 1, 0);
    span("cuda_runtime", "cudaLaunchKernel", at + 10, 5, 1, 10 * step + 1);
    span("cuda_runtime", "cudaLaunchKernel", at + 20, 5, 1, 10 * step + 2);
    span("kernel", "gemm", at + 100, 6000, 7, 10 * step + 1);
    span("kernel", "ncclKernel_AllReduce_RING_LL_Sum_float", at + 6100, 2000, 7, 10 * step + 2);
  }
  const TemporaryFolder folder;
  WhySlowOptions options;
  options.trace = folder.add("trace.json", Json{{"traceEvents", events}}.dump());
  options.batch = 32;
  const documents::WhySlow answer = why_slow(options);
  EXPECT_EQ(answer.verdict, "trace");
  EXPECT_NEAR(answer.efficiency, 0.6, 0.02);
  EXPECT_NEAR(answer.shares[1].share, 0.2, 0.02);
  EXPECT_NEAR(answer.shares[3].share, 0.2, 0.02);
  EXPECT_NEAR(*answer.causes.front().mended, 32 / 0.008, 100);
}

}  // namespace
}  // namespace ganymede::studies
