#include "calibration/gpu_transfer.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "common/units.hpp"
#include "support/made_up.hpp"

namespace ganymede::calibration {
namespace {

platforms::Gpu board(const std::string& name, double fp32_tflops, double tensor_tflops, double gigabytes_per_s) {
  platforms::Gpu gpu;
  gpu.name = name;
  gpu.fp32 = FlopsPerSecond{1e12 * fp32_tflops};
  if (tensor_tflops > 0) gpu.tensor = FlopsPerSecond{1e12 * tensor_tflops};
  gpu.memory_bandwidth = BytesPerSecond{1e9 * gigabytes_per_s};
  return gpu;
}

const std::vector<platforms::Gpu>& boards() {
  static const std::vector<platforms::Gpu> all = {
      board("K80", 4.113, 0, 240),         board("P100", 9.526, 0, 732),        board("V100", 15.7, 125, 900),
      board("A100-40GB", 19.5, 312, 1555), board("A100-80GB", 19.5, 312, 2039), board("RTX-A6000", 38.7, 154.8, 768),
      board("H100", 67, 990, 3350),        board("H200", 67, 990, 4800)};
  return all;
}

const platforms::Gpu& board_of(const std::string& name) {
  for (const platforms::Gpu& gpu : boards())
    if (gpu.name == name) return gpu;
  throw std::out_of_range(name);
}

/// A trace of PyTorch, recorded on that GPU, whose limits are those of the data sheet.
traces::StepTrace trace_on(const platforms::Gpu& gpu, const std::string& precision) {
  traces::StepTrace trace = constant_trace(1);
  trace.device.name = gpu.name;
  trace.device.fp32 = precision == "fp16" ? *gpu.tensor : gpu.fp32;
  trace.device.memory_bandwidth = gpu.memory_bandwidth;
  trace.software = {"PyTorch", "1.5", ""};
  trace.precision = precision;
  return trace;
}

traces::TracePhase phase_with(double flops, double bytes) {
  traces::TracePhase phase;
  phase.flops = flops;
  phase.bytes_read = bytes;
  return phase;
}

/// The same training on two GPUs, as published, in steps or images a second.
struct PublishedPair {
  const char *what, *from, *to, *precision;
  double from_rate, to_rate;
  double flops, bytes;  // of one step or image
};

// FLOPs: three forward passes of 4.1 (ResNet-50), 11.6 (ResNet-152), 5.7 (Inception V3), 15.5 (VGG16) and 0.7 (AlexNet)
// GMAC. Bytes: 84 for each output of a convolution, 60 without batch norm: a forward pass reads and writes it, batch
// norm reads it twice and writes it once, ReLU reads and writes it; backward twice that. Rates: TF (tf_benchmarks 2017,
// batch 64 or the largest), Gavel (simulation_throughputs.json @c4fa40097339), NVIDIA DeepLearningExamples
// @291f0d02e815, MLPerf 0.7 (eight GPUs each), Lambda @0551cb70ffdc.
const std::vector<PublishedPair>& published_pairs() {
  static const std::vector<PublishedPair> pairs = {
      {"TF ResNet-50", "K80", "P100", "fp32", 51.9, 219, 24.6e9, 0.93e9},
      {"TF ResNet-152", "K80", "P100", "fp32", 20, 82.7, 69.4e9, 2.6e9},
      {"TF Inception V3", "K80", "P100", "fp32", 30.5, 142, 34.2e9, 0.9e9},
      {"TF VGG16", "K80", "P100", "fp32", 35.4, 144, 93e9, 0.82e9},
      {"TF AlexNet", "K80", "P100", "fp32", 656, 2987, 4e9, 0.045e9},
      {"Gavel ResNet-50", "K80", "V100", "fp32", 64 * 0.619, 64 * 4.3948, 24.6e9, 0.93e9},
      {"Gavel ResNet-50", "P100", "V100", "fp32", 64 * 2.6195, 64 * 4.3948, 24.6e9, 0.93e9},
      {"Gavel CycleGAN", "K80", "P100", "fp32", 0.5048, 2.4027, 2100e9, 17e9},
      {"Gavel CycleGAN", "P100", "V100", "fp32", 2.4027, 4.4261, 2100e9, 17e9},
      {"NVIDIA ResNet-50", "V100", "A100-80GB", "fp16", 1200, 2470, 24.6e9, 0.47e9},
      {"NVIDIA ResNet-50, TF32", "V100", "A100-80GB", "fp32", 367, 938, 24.6e9, 0.93e9},
      {"MLPerf ResNet-50", "V100", "A100-40GB", "fp16", 11066 / 8.0, 22195 / 8.0, 24.6e9, 0.47e9},
      {"Lambda ResNet-50, TF32", "V100", "RTX-A6000", "fp32", 369, 514, 24.6e9, 0.93e9}};
  return pairs;
}

struct Errors {
  double mean = 0, of_bandwidths = 0;
  int held = 0;
};

Errors errors(bool counted) {
  Errors out;
  for (const PublishedPair& pair : published_pairs()) {
    const platforms::Gpu &from = board_of(pair.from), &to = board_of(pair.to);
    const traces::StepTrace trace = trace_on(from, pair.precision);
    const TrainingLimits source = recorded_limits(trace), target = training_limits(trace, to);
    const traces::TracePhase phase = counted ? phase_with(pair.flops, pair.bytes) : phase_with(0, 0);
    const double predicted_s = carried_s(phase, 1 / pair.from_rate, source, target);
    const double error = std::abs(std::log(predicted_s * pair.to_rate));
    EXPECT_LT(error, counted ? 0.25 : 0.45) << pair.what << " from " << pair.from << " to " << pair.to;
    out.mean += error / static_cast<double>(published_pairs().size());
    out.of_bandwidths +=
        std::abs(std::log(from.memory_bandwidth.si / to.memory_bandwidth.si * pair.to_rate / pair.from_rate)) /
        static_cast<double>(published_pairs().size());
    out.held += error < transfer_error(source, target, counted);
  }
  return out;
}

TEST(GpuTransfer, BeatsTheRatioOfBandwidthsOnPublishedPairs) {
  const Errors found = errors(true);
  EXPECT_LT(found.mean, 0.10);
  EXPECT_LT(found.mean, 0.5 * found.of_bandwidths);
  EXPECT_GE(found.held, 12);
}

TEST(GpuTransfer, WithoutFlopsIsBetterThanTheRatioOfBandwidthsToo) {
  const Errors found = errors(false);
  EXPECT_LT(found.mean, 0.16);
  EXPECT_LT(found.mean, 0.6 * found.of_bandwidths);
  EXPECT_GE(found.held, 12);
}

TEST(GpuTransfer, ToTheSameGpuChangesNothing) {
  for (const platforms::Gpu& gpu : boards()) {
    const traces::StepTrace trace = trace_on(gpu, "fp32");
    const TrainingLimits source = recorded_limits(trace), target = training_limits(trace, gpu);
    if (gpu.name == "H200") continue;  // the table has its bandwidth; H100 is the same otherwise
    EXPECT_NEAR(carried_s(phase_with(1e12, 1e9), 0.5, source, target), 0.5, 0.5 * 1e-3) << gpu.name;
    EXPECT_NEAR(transfer_error(source, target, true), 0.05, 1e-3) << gpu.name;
  }
}

// A V100 reaches 807 GB/s (90 %), a P100 544 (74 %): a phase that only moves data takes (544 / 807)^0.9 of the time, to
// the rounding of the shares.
TEST(GpuTransfer, DataMovesAtTheReachedBandwidths) {
  const traces::StepTrace trace = trace_on(board_of("P100"), "fp32");
  const double seconds =
      carried_s(phase_with(0, 1e9), 1, recorded_limits(trace), training_limits(trace, board_of("V100")));
  EXPECT_NEAR(seconds, std::pow(544.0 / 807, 0.9), 0.01);
}

// Whether a trace of a known GPU states what was measured or what its data sheet says, the limits are the same. Those
// of a part of the GPU are believed.
TEST(GpuTransfer, StatedLimitsOfAKnownGpuMayBeMeasuredOrADataSheets) {
  traces::StepTrace trace = trace_on(board_of("P100"), "fp32");
  const TrainingLimits of_data_sheet = recorded_limits(trace);
  trace.device.memory_bandwidth = BytesPerSecond{544e9};
  trace.device.fp32 = FlopsPerSecond{8.9e12};
  EXPECT_EQ(recorded_limits(trace).bytes, of_data_sheet.bytes);
  EXPECT_EQ(recorded_limits(trace).flops, of_data_sheet.flops);
  trace.device.memory_bandwidth = BytesPerSecond{270e9};
  EXPECT_EQ(recorded_limits(trace).bytes, 270e9);
  EXPECT_FALSE(recorded_limits(trace).known);
}

TEST(GpuTransfer, KnowsNamesAsDriversWriteThem) {
  const traces::StepTrace plain = trace_on(board_of("A100-80GB"), "fp16");
  traces::StepTrace full = plain;
  full.device.name = "NVIDIA A100-SXM4-80GB";
  EXPECT_EQ(recorded_limits(full).bytes, recorded_limits(plain).bytes);
  EXPECT_TRUE(has_tensor_cores("Tesla V100-SXM2-16GB"));
  EXPECT_TRUE(has_tensor_cores("NVIDIA GeForce RTX 3090"));
  EXPECT_FALSE(has_tensor_cores("Tesla P100-PCIE-16GB"));
  EXPECT_FALSE(has_tensor_cores("GPU-X"));
}

// PyTorch convolves in TF32 on an A100; the program's own kernel does not.
TEST(GpuTransfer, Fp32OfFrameworksRunsAsTf32WhereTheGpuCan) {
  traces::StepTrace trace = trace_on(board_of("V100"), "fp32");
  const double tf32 = training_limits(trace, board_of("A100-40GB")).flops;
  trace.software.name = "ganymede";
  EXPECT_GT(tf32, 2 * training_limits(trace, board_of("A100-40GB")).flops);
}

// BERT large in FP32 on a V100 and in TF32 on an RTX A6000 (lambdal/deeplearning-benchmark @0551cb70ffdc): 12 and 33
// sequences a second. Where no FLOPs are counted, nothing says that these are products.
TEST(GpuTransfer, SaysThatUncountedWorkInTf32MayGainMuchMore) {
  const auto off = [](const char* from, const char* to, double ratio) {
    const traces::StepTrace trace = trace_on(board_of(from), "fp32");
    const TrainingLimits source = recorded_limits(trace), target = training_limits(trace, board_of(to));
    return std::pair(std::abs(std::log(carried_s(phase_with(0, 0), 1, source, target) * ratio)),
                     transfer_error(source, target, false));
  };
  const auto [error, stated] = off("V100", "RTX-A6000", 33 / 12.0);
  EXPECT_GT(error, 0.7);
  EXPECT_LT(error, stated);
  EXPECT_LT(off("RTX-A6000", "H100", 1).second, 0.4) << "both take TF32";
  EXPECT_LT(off("P100", "V100", 1).second, 0.4) << "neither does";
}

TEST(GpuTransfer, IsLessSureOfUnknownGpusAndUnknownWork) {
  const TrainingLimits slow{1e12, 1e11, true}, fast{2e12, 2e11, true}, unknown{2e12, 2e11, false};
  EXPECT_GT(transfer_error(slow, fast, false), transfer_error(slow, fast, true));
  EXPECT_NEAR(transfer_error(slow, unknown, true), 1.5 * transfer_error(slow, fast, true), 1e-12);
  EXPECT_NEAR(transfer_error(fast, slow, true), transfer_error(slow, fast, true), 1e-12);
}

}  // namespace
}  // namespace ganymede::calibration
