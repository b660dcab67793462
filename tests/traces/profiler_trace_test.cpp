#include "traces/profiler_trace.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "common/errors.hpp"
#include "common/json.hpp"
#include "common/json_value.hpp"
#include "common/units.hpp"
#include "kineto.hpp"
#include "support/errors.hpp"

namespace ganymede::traces {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
TEST_F(Profiler, ReadsWhatMatters) {
  const ProfilerEvents events = read(Kineto().trace.dump());
  EXPECT_EQ(events.steps.size(), 5U);
  EXPECT_EQ(events.gpu.size(), 5U * 6 + 1);
  EXPECT_EQ(events.device, "NVIDIA A100-SXM4-40GB");
  EXPECT_EQ(events.rank, 1);
  EXPECT_EQ(events.ranks, 4);
  EXPECT_THAT(events.collectives, ElementsAre("allreduce"));
}

TEST_F(Profiler, BreaksAStepDownByHand) {
  const ProfilerImport result = import(Kineto());
  // The host ends the last step 9 ms after the GPU began it. On average the GPU begins a step 1 ms after the host.
  EXPECT_EQ(result.steps, 5U);
  EXPECT_NEAR(result.mean.step, 10e-3, 1e-9);
  EXPECT_NEAR(result.mean.compute, 6e-3, 1e-9);
  EXPECT_NEAR(result.mean.exposed, 1e-3, 1e-9);
  EXPECT_NEAR(result.mean.overlapped, 1e-3, 1e-9);
  EXPECT_NEAR(result.mean.copies, 0.2e-3, 1e-9);
  EXPECT_NEAR(result.mean.idle, 10e-3 - 6e-3 - 1e-3 - 0.2e-3, 1e-9);
  EXPECT_NEAR(result.mean.unattributed, 0, 1e-9);
}

// The exposed millisecond of the all-reduce is taken out: a step of 9 ms whose update starts at 7 ms.
TEST_F(Profiler, PhasesByHand) {
  const ProfilerImport result = import(Kineto());
  const TraceBatch& batch = result.trace.batches.front();
  EXPECT_EQ(batch.batch, 64);
  for (const double wall : batch.wall_s) EXPECT_NEAR(wall, 9e-3, 1e-9);
  ASSERT_EQ(batch.phases.size(), 4U);
  const auto is = [](const TracePhase& phase, const char* name, double start, double seconds) {
    EXPECT_EQ(phase.name, name);
    EXPECT_NEAR(phase.start_s[0], start, 1e-9) << name;
    EXPECT_NEAR(phase.seconds[0], seconds, 1e-9) << name;
  };
  is(batch.phases[0], "copy", 0, 0.2e-3);
  is(batch.phases[1], "forward", 1e-3, 3e-3);
  is(batch.phases[2], "backward", 4e-3, 3e-3);
  is(batch.phases[3], "update", 7e-3, 0.5e-3);
  EXPECT_EQ(batch.phases[0].bytes_read, 786'432);
  EXPECT_EQ(batch.phases[1].launches, 2);
  ASSERT_EQ(batch.buckets.size(), 1U);
  EXPECT_EQ(batch.buckets[0].bytes, 4'000'000);
  EXPECT_EQ(batch.buckets[0].after_phase, "backward");
  EXPECT_NEAR(batch.buckets[0].ready_fraction, 2.0 / 3, 1e-9);
  // The trace can be written and read again.
  const StepTrace again = read_step_trace(JsonNode::parse(write_step_trace(result.trace), "trace.json"));
  EXPECT_EQ(again.networks.at("model").gradient_bytes, 4'000'000);
}

/// Six steps of a host that needs 3 ms for each, and of a GPU that needs 10 ms: 5 ms forward, 5 ms backward, on stream
/// 7 without a gap. A copy on another stream runs as soon as it is launched. So does preprocessing, which is launched
/// between the two and for which the GPU needs 0.5 ms.
Kineto lagging() {
  Kineto out(0);
  for (int i = 0; i < 6; ++i) {
    const double host = 3000.0 * i, gpu = 1000 + 10'000.0 * i;
    out.host("user_annotation", fmt::format("ProfilerStep#{}", i), host, 3000);
    out.host("user_annotation", "forward", host + 400, 200);
    out.host("user_annotation", "preprocess", host + 700, 200);
    out.host("user_annotation", "backward", host + 1000, 500);
    out.kernel("Memcpy HtoD (Pinned -> Device)", host + 100, 200, 22, host + 50, {{"bytes", 786'432}}, "gpu_memcpy");
    out.kernel("conv", gpu, 5000, 7, host + 500);
    out.kernel("sort", host + 900, 500, 27, host + 800);
    out.kernel("dgrad", gpu + 5000, 5000, 7, host + 1100);
  }
  return out;
}

// A step was taken to begin with its first copy, which runs while the GPU still computes the steps before: they were
// counted twice, as steps of up to 45 ms.
TEST_F(Profiler, StepsOfAGpuThatLagsItsHostDoNotOverlap) {
  options.parameters = 1000;
  const ProfilerImport result = import(lagging());
  EXPECT_EQ(result.steps, 6U);
  const TraceBatch& batch = result.trace.batches.front();
  double sum = 0;
  for (const double wall : batch.wall_s) sum += wall;
  EXPECT_NEAR(sum, 60e-3, 1e-9);  // the span of the GPU's work
  EXPECT_NEAR(result.mean.step, 10e-3, 1e-9);
  EXPECT_NEAR(result.mean.compute, 10e-3, 1e-9);
  EXPECT_NEAR(result.mean.copies + result.mean.idle, 0, 1e-9);
  ASSERT_EQ(batch.phases.size(), 4U);  // in the order of their launches, whatever runs first on the GPU
  const auto is = [&](std::size_t phase, const char* name, double start, double seconds) {
    EXPECT_EQ(batch.phases[phase].name, name);
    for (std::size_t step = 0; step < 6; ++step) {
      EXPECT_NEAR(batch.phases[phase].start_s[step], start, 1e-9) << name;
      EXPECT_NEAR(batch.phases[phase].seconds[step], seconds, 1e-9) << name;
    }
  };
  is(1, "forward", 0, 5e-3);
  is(2, "preprocess", 5e-3, 0);  // costs nothing beside the other stream
  is(3, "backward", 5e-3, 5e-3);
}

// Launched before the profiler began, it counted to the step of the host in whose time it ran: that step was 0.9 ms
// longer and of other phases.
TEST_F(Profiler, WhatWasLaunchedBeforeTheTraceBelongsToNoStep) {
  Kineto kineto;
  kineto.kernel("earlier", 1e6 - 900, 800, 7, -1);
  const ProfilerImport result = import(kineto);
  EXPECT_EQ(result.steps, 5U);
  EXPECT_THAT(result.notes, testing::Not(testing::Contains(HasSubstr("left out"))));
  EXPECT_NEAR(result.mean.step, 10e-3, 1e-9);
}

TEST_F(Profiler, AKernelWithoutItsLaunchFollowsTheOneBeforeItOnItsStream) {
  Kineto kineto;
  for (int i = 0; i < 5; ++i)
    kineto.kernel("without", 1e6 + 10'000.0 * i + 9200, 100, 7, -1);  // in the host's next step
  const ProfilerImport result = import(kineto);
  EXPECT_THAT(result.notes, testing::Not(testing::Contains(HasSubstr("left out"))));
  EXPECT_EQ(result.trace.batches[0].phases.back().name, "update");
  EXPECT_EQ(result.trace.batches[0].phases.back().launches, 2);
}

TEST_F(Profiler, WithoutCollectivesTheParametersMustBeSaid) {
  const Kineto alone(5, false);
  EXPECT_THAT(message_of<ConfigError>([&] { import(alone); }), HasSubstr("--parameters"));
  options.parameters = 2'000'000;
  const ProfilerImport result = import(alone);
  EXPECT_EQ(result.trace.batches[0].buckets.at(0).bytes, 8'000'000);
  EXPECT_EQ(result.trace.batches[0].buckets.at(0).after_phase, "update");
}

/// A convolution with an activation: two kernels with matrix work in a step, as in the profile.
LayerList one_convolution(const std::string& more) {
  return read_layer_list(JsonNode::parse(R"({ "schema": "ganymede.layers/1", "name": "m", "networks": {
    "net": { "input": [3, 8, 8], "layers": [ { "kind": "convolution", "out": 4, "kernel": 3, "bias": false },
                                             { "kind": "activation" })" +
                                             more + R"( ] } },
    "step": [ { "network": "net", "pass": "forward" }, { "network": "net", "pass": "backward" },
              { "network": "net", "pass": "update" } ] })",
                                         "m.json"));
}

// "conv" takes 1.5 ms and "dgrad" 3 ms. The rest, "relu" and "adam", takes 1.5 ms.
TEST_F(Profiler, GivesEachLayerItsMeasuredTime) {
  options.layers = one_convolution("");
  const ProfilerImport result = import(Kineto());
  const std::vector<TraceKernel>& kernels = result.trace.kernels;
  ASSERT_EQ(kernels.size(), 5U);
  EXPECT_EQ(kernels[0].kind, TraceKernel::Kind::convolution);
  EXPECT_NEAR(kernels[0].measured_s, 1.5e-3, 1e-9);
  EXPECT_EQ(kernels[0].phase, "forward");
  EXPECT_EQ(kernels[3].kind, TraceKernel::Kind::convolution_weight_gradient);
  EXPECT_NEAR(kernels[3].measured_s, 3e-3, 1e-9);
  EXPECT_EQ(kernels[3].phase, "backward");
  EXPECT_EQ(kernels[4].op, "adam");
  EXPECT_NEAR(kernels[1].measured_s + kernels[2].measured_s + 7 * kernels[4].measured_s, 1.5e-3, 1e-9);
  EXPECT_NEAR(kernels[2].measured_s / kernels[1].measured_s, 1.5, 1e-9);  // three numbers moved instead of two
  // For each of 64 images the activation moves 2 x 256 numbers; Adam moves 7 x 108, whatever the batch.
  EXPECT_NEAR(kernels[4].measured_s / kernels[1].measured_s, 18.0 / 7 * 108 / (64 * 2 * 256), 1e-9);
  EXPECT_THAT(result.notes, testing::Contains(HasSubstr("each layer keeps its own residual")));
  const StepTrace again = read_step_trace(JsonNode::parse(write_step_trace(result.trace), "trace.json"));
  EXPECT_EQ(again.kernels, kernels);
}

// With one more product in the list, the 4.5 ms of convolutions and products are divided by FLOPs.
TEST_F(Profiler, DividesTheTimeIfTheLayersAreOthers) {
  options.layers = one_convolution(R"(, { "kind": "linear", "out": 1, "bias": false })");
  const ProfilerImport result = import(Kineto());
  double seconds = 0, flops = 0;
  for (const TraceKernel& kernel : result.trace.kernels)
    if (kernel.flops() > 0) seconds += kernel.measured_s, flops += kernel.flops();
  EXPECT_NEAR(seconds, 4.5e-3, 1e-9);
  EXPECT_NEAR(result.trace.kernels[0].measured_s, 4.5e-3 * result.trace.kernels[0].flops() / flops, 1e-9);
  EXPECT_THAT(result.notes, testing::Contains(HasSubstr("all layers keep one residual")));
}

TEST_F(Profiler, CarriesPhasesAsWholesIfNoKernelIsKnown) {
  options.layers = one_convolution("");
  Kineto kineto;
  for (Json& event : kineto.events())
    if (event.value("cat", "") == "kernel" && !event["name"].get<std::string>().starts_with("nccl"))
      event["name"] = "unknown";
  const ProfilerImport result = import(kineto);
  EXPECT_TRUE(result.trace.kernels.empty());
  EXPECT_THAT(result.notes, testing::Contains(HasSubstr("the list of layers has 2 of them")));
}

TEST_F(Profiler, WithoutAnnotationsTheStepIsOnePhase) {
  const ProfilerImport result = import(Kineto(5, true, false));
  EXPECT_EQ(result.trace.batches[0].phases.back().name, "step");
  EXPECT_THAT(result.notes, testing::Contains(HasSubstr("no annotations")));
}

TEST_F(Profiler, StepsOfAnotherKindAreLeftOut) {
  Kineto kineto(6);
  kineto.host("user_annotation", "evaluation", 1e6 + 10'000 + 7000, 500);
  kineto.kernel("eval", 1e6 + 10'000 + 8600, 100, 7, 1e6 + 10'000 + 7100);
  const ProfilerImport result = import(kineto);
  EXPECT_EQ(result.steps, 5U);
  EXPECT_THAT(result.notes, testing::Contains(HasSubstr("1 of 6 steps has other phases")));
}

TEST_F(Profiler, PhasesThatTellNothingAreJoined) {
  Kineto kineto(3);
  for (const int i : {0, 1, 2}) {
    kineto.host("user_annotation", fmt::format("epoch {}", i), 1e6 + 10'000 * i + 7000, 500);
    kineto.kernel("more", 1e6 + 10'000 * i + 8600, 100, 7, 1e6 + 10'000 * i + 7100);
  }
  const ProfilerImport result = import(kineto);
  EXPECT_EQ(result.steps, 3U);
  EXPECT_EQ(result.trace.batches[0].phases.back().name, "step");
  EXPECT_EQ(result.trace.batches[0].phases.back().launches, 5);
  EXPECT_THAT(result.notes, testing::Contains(HasSubstr("another order")));
  EXPECT_NEAR(result.mean.step, 10e-3, 1e-9);
}

TEST_F(Profiler, LayersGiveFlops) {
  options.layers = read_layer_list(JsonNode::parse(R"({ "schema": "ganymede.layers/1", "name": "m", "networks": {
    "generator": { "input": [1, 1, 1], "layers": [ { "kind": "linear", "out": 10 } ] },
    "discriminator": { "input": [10, 1, 1], "layers": [ { "kind": "linear", "out": 1 } ] } } })",
                                                   "m.json"));
  const ProfilerImport result = import(Kineto());
  double flops = 0;
  for (const TracePhase& phase : result.trace.batches[0].phases) flops += phase.flops;
  // Generator 20 FLOP forward and 40 backward; discriminator 20 x (2 + 4 + 1 + 1).
  EXPECT_NEAR(flops, 64.0 * (60 + 160), 1e-6);
  EXPECT_NEAR(result.trace.networks.at("model").flops_per_image, 220, 1e-9);
}

}  // namespace
}  // namespace ganymede::traces
