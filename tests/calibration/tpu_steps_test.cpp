// A step on a TPU: kernels as XLA fuses them, arrays filled up to tiles.

#include "calibration/tpu_steps.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/json.hpp"
#include "common/json_value.hpp"
#include "common/units.hpp"
#include "support/made_up.hpp"
#include "traces/recorded.hpp"

namespace ganymede::calibration {
namespace {

using namespace literals;
using traces::TraceKernel;

/// 100 TFLOP/s, of which products reach 80, and 900 GB/s, of which kernels reach 750.
platforms::Gpu chip() {
  platforms::Gpu gpu;
  gpu.kind = platforms::Gpu::Kind::tpu;
  gpu.name = "TPU-X";
  gpu.memory = 16_GiB;
  gpu.fp32 = 100.0_Tflop_per_s;
  gpu.tensor = gpu.fp32;
  gpu.memory_bandwidth = 900_GB_per_s;
  return gpu;
}

constexpr int kImages = 128;

/// Seconds of a step of these kernels with 128 images, in bf16.
double step_s(std::vector<TraceKernel> kernels) {
  traces::StepTrace trace = constant_trace(4);
  trace.precision = "bf16";
  traces::TraceBatch& batch = trace.batches.front();
  batch.batch = kImages;
  for (TraceKernel& kernel : kernels) {
    kernel.phase = batch.phases.front().name;
    kernel.stage = batch.stage;
  }
  trace.kernels = std::move(kernels);
  const auto times = tpu_times(trace, batch, chip());
  EXPECT_TRUE(times);
  return times->phases.at(batch.phases.front().name).device_s;
}

/// 3 x 3 filters over 16 x 16 pixels.
TraceKernel convolution(std::int64_t in, std::int64_t out) {
  TraceKernel kernel;
  kernel.kind = TraceKernel::Kind::convolution;
  kernel.in_channels = in, kernel.out_channels = out;
  kernel.in = {1, 16, 16}, kernel.window = {1, 3, 3}, kernel.padding = {0, 1, 1};
  return kernel;
}

/// Moves the 128 channels of each image.
TraceKernel moves(TraceKernel::Kind kind, const char* op, double reads = 1) {
  TraceKernel kernel;
  kernel.kind = kind, kernel.op = op;
  kernel.cols = 128 * 256;
  kernel.reads = reads;
  return kernel;
}

constexpr double kNumbers = kImages * 128.0 * 256, kPass_s = kNumbers * 2 / 750e9;

TEST(TpuSteps, ConvolutionsTakeTheirMultiplyAddsInFullTiles) {
  const double full = 2 * kNumbers * 128 * 9 / 80e12;
  EXPECT_NEAR(step_s({convolution(128, 128)}), full, 1e-9);
  EXPECT_NEAR(step_s({convolution(128, 64)}), full, 1e-9) << "half of the unit's columns are empty";
  EXPECT_NEAR(step_s({convolution(128, 256)}), 2 * full, 1e-9);
  EXPECT_LT(step_s({convolution(64, 128)}), 0.6 * full) << "nine numbers of each channel fill the rows";
  TraceKernel to_input = convolution(64, 128);
  to_input.kind = TraceKernel::Kind::convolution_data_gradient;
  EXPECT_NEAR(step_s({to_input}), full, 1e-9);
}

TEST(TpuSteps, WhatMovesNumbersIsFusedWithWhatComputesThem) {
  using Kind = TraceKernel::Kind;
  const double computed = step_s({convolution(128, 128)});
  const TraceKernel bias = moves(Kind::elementwise, "bias"), add = moves(Kind::elementwise, "add", 2);
  const TraceKernel statistics = moves(Kind::normalization, "norm_statistics"), norm = moves(Kind::elementwise, "norm");
  EXPECT_NEAR(step_s({convolution(128, 128), bias, bias}), computed, 1e-9);
  EXPECT_NEAR(step_s({convolution(128, 128), add}), computed + kPass_s, 1e-9) << "the second operand is read";
  EXPECT_NEAR(step_s({convolution(128, 128), statistics, norm, bias}), computed + 2 * kPass_s, 1e-9);
  EXPECT_NEAR(step_s({bias, bias}), 2 * kPass_s, 1e-9) << "alone they are read and written once";
}

TEST(TpuSteps, ArraysOfFewChannelsAreAsLargeAsTheirTiles) {
  TraceKernel add = moves(TraceKernel::Kind::elementwise, "add", 2);
  add.cols = 4 * 256;
  const double added = step_s({convolution(128, 4), add}) - step_s({convolution(128, 4)});
  EXPECT_NEAR(added, 2 * kPass_s * 4 / 128, 1e-12) << "128 images fill the lanes, four channels half of the rest";
}

TEST(TpuSteps, OnlyTpusAndOnlyListsOfKernels) {
  const traces::StepTrace trace = constant_trace(4);
  EXPECT_FALSE(tpu_times(trace, trace.batches.front(), chip()));
  traces::StepTrace listed = trace;
  listed.kernels = {convolution(8, 8)};
  platforms::Gpu gpu = chip();
  gpu.kind = platforms::Gpu::Kind::gpu;
  EXPECT_FALSE(tpu_times(listed, listed.batches.front(), gpu));
}

// Google's runs of MLPerf 0.7 (training_results_v0.7 at 0a8a85a209c8): 1,762 and 3,292 images a second and chip,
// evaluation and all-reduces included. The roofline of PyTorch's passes said 890 and 1,180.
TEST(TpuSteps, ResNet50IsNearPublishedRates) {
  const std::string name = "layers:resnet50:bf16";
  const traces::StepTrace trace = traces::read_step_trace(
      JsonNode::parse(traces::trace_text(JsonNode::wrap(Json(name), "scenario.json", "")), name));
  const auto rate = [&](FlopsPerSecond peak, BytesPerSecond bandwidth) {
    platforms::Gpu gpu = chip();
    gpu.fp32 = peak, gpu.tensor = peak, gpu.memory_bandwidth = bandwidth;
    return 256 / workload_on(trace, *trace.find_batch(256), gpu, nullptr).central.mean_s();
  };
  EXPECT_NEAR(rate(123.0_Tflop_per_s, 900_GB_per_s) / 1762, 1, 0.15);
  EXPECT_NEAR(rate(275.0_Tflop_per_s, 1200_GB_per_s) / 3292, 1, 0.3);
}

TEST(TpuSteps, SayThatAnotherMakersChipIsTakenForOne) {
  traces::StepTrace trace = constant_trace(4);
  trace.kernels = {convolution(128, 128)};
  trace.kernels.front().phase = trace.batches.front().phases.front().name;
  trace.kernels.front().stage = trace.batches.front().stage;
  platforms::Gpu other = chip();
  EXPECT_EQ(tpu_times(trace, trace.batches.front(), other)->warnings.size(), 1U);
  other.name = "Gaudi2";
  const auto times = tpu_times(trace, trace.batches.front(), other);
  EXPECT_THAT(times->rule, testing::HasSubstr("as a TPU's are"));
  EXPECT_THAT(times->warnings, testing::Contains(testing::HasSubstr("Gaudi2 is no TPU")));
}

}  // namespace
}  // namespace ganymede::calibration
