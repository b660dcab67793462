#include "calibration/kernel_steps.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "calibration/kernel_workload.hpp"
#include "common/units.hpp"
#include "support/made_up.hpp"
#include "traces/layer_list.hpp"

namespace ganymede::calibration {
namespace {

using namespace literals;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using Growth = traces::TraceKernel::Growth;
using Kind = traces::TraceKernel::Kind;

traces::TraceKernel moving(const std::string& phase, std::int64_t cols, double times = 1) {
  traces::TraceKernel kernel;
  kernel.phase = phase, kernel.layer = "layer", kernel.op = "relu", kernel.cols = cols, kernel.times = times;
  return kernel;
}

/// A trace of our own of the phases "a" and "b" at batch 64.
traces::StepTrace listed(std::vector<traces::TraceKernel> kernels) {
  traces::StepTrace trace = constant_trace(2);
  trace.device.kind = "cpu";
  traces::TraceBatch& batch = trace.batches.front();
  batch.buckets.clear();
  batch.phases.resize(2);
  batch.phases[0].name = "a", batch.phases[1].name = "b";
  trace.kernels = std::move(kernels);
  return trace;
}

platforms::Gpu gpu(const std::string& name) {
  const GpuSheet& sheet = *find_gpu_sheet(name);
  platforms::Gpu gpu;
  gpu.name = gpu.family = name;
  gpu.memory = 16_GiB;
  gpu.fp32 = FlopsPerSecond{sheet.fp32_flops()};
  gpu.memory_bandwidth = BytesPerSecond{sheet.memory_bandwidth};
  gpu.launch = 4_us;
  return gpu;
}

TEST(KernelsAt, GrowWithTheBatch) {
  traces::TraceKernel product;
  product.phase = "a", product.kind = Kind::product, product.m = 3, product.n = 5, product.k = 7;
  product.grows = Growth::k;
  traces::TraceKernel convolution;
  convolution.phase = "a", convolution.kind = Kind::convolution_weight_gradient;
  convolution.in = {1, 9, 8}, convolution.window = {1, 3, 2}, convolution.stride = {1, 2, 1};
  traces::TraceKernel update = moving("b", 11);
  update.grows = Growth::none;
  traces::StepTrace trace = listed({product, convolution, update, moving("b", 11)});
  trace.precision = "tf32";
  trace.kernels[3].precision = "fp16";
  const std::vector<StepKernel> kernels = kernels_at(trace, trace.batches[0]);
  EXPECT_EQ(kernels[0].kernel.k, 7 * 64);
  EXPECT_EQ(kernels[0].kernel.m, 3);
  EXPECT_EQ(kernels[1].kernel.kind, KernelKind::kConvolutionWeightGradient);
  EXPECT_EQ(kernels[1].kernel.batch, 64);
  EXPECT_EQ(kernels[1].kernel.in_h, 9);
  EXPECT_EQ(kernels[1].kernel.kernel_w, 2);
  EXPECT_EQ(kernels[1].kernel.stride_h, 2);
  EXPECT_EQ(kernels[1].kernel.precision, KernelPrecision::kTf32);
  EXPECT_EQ(kernels[2].kernel.rows * kernels[2].kernel.cols, 11);
  EXPECT_EQ(kernels[3].kernel.rows * kernels[3].kernel.cols, 11 * 64);
  EXPECT_EQ(kernels[3].kernel.precision, KernelPrecision::kFp16);
}

// Real and generated images may go through a convolution together; a batch may be one for its own sake.
TEST(KernelsAt, ConvolveTwiceTheBatchOrAFixedOne) {
  traces::TraceKernel both;
  both.phase = "a", both.kind = Kind::convolution, both.batch = 2, both.grows = Growth::batch;
  traces::TraceKernel fixed = both;
  fixed.batch = 16, fixed.grows = Growth::none;
  const traces::StepTrace trace = listed({both, fixed});
  const std::vector<StepKernel> kernels = kernels_at(trace, trace.batches[0]);
  EXPECT_EQ(kernels[0].kernel.batch, 2 * 64);
  EXPECT_EQ(kernels[1].kernel.batch, 16);
}

// Three kernels over the same numbers become one that reads them once and writes once; a product stands between.
TEST(KernelsAt, HaveFiltersOfTheirOwnForEachImage) {
  traces::TraceKernel modulated;
  modulated.phase = "a", modulated.kind = Kind::convolution, modulated.grows = Growth::groups;
  modulated.in_channels = 8, modulated.out_channels = 16, modulated.in = {1, 9, 9}, modulated.window = {1, 3, 3};
  const traces::StepTrace trace = listed({modulated});
  const Kernel kernel = kernels_at(trace, trace.batches[0]).front().kernel;
  EXPECT_EQ(kernel.batch, 1);
  EXPECT_EQ(kernel.groups, 64);
  EXPECT_EQ(kernel.in_channels, 64 * 8);
  EXPECT_EQ(kernel.out_channels, 64 * 16);
  EXPECT_EQ(direct_flops(kernel), 64.0 * 2 * 8 * 16 * 9 * 7 * 7);
}

TEST(KernelsAt, AreFusedByACompiler) {
  traces::TraceKernel add = moving("a", 5);
  add.reads = 2;
  traces::TraceKernel product;
  product.phase = "a", product.kind = Kind::product;
  traces::StepTrace trace = listed({moving("a", 5), add, moving("a", 5), product, moving("a", 5), moving("a", 6)});
  EXPECT_EQ(kernels_at(trace, trace.batches[0]).size(), 6U);
  trace.executor = "compiled";
  const std::vector<StepKernel> kernels = kernels_at(trace, trace.batches[0]);
  ASSERT_EQ(kernels.size(), 4U);
  EXPECT_EQ(kernels[0].kernel.reads_per_element, 2);  // the first input, and what is added
  EXPECT_EQ(kernels[0].kernel.writes_per_element, 1);
}

TEST(SheetOf, FollowsTheNameUnlessTheRatesAreOthers) {
  platforms::Gpu known = gpu("V100");
  EXPECT_EQ(sheet_of(known)->multiprocessors, 80);
  known.multiprocessors = 40;
  EXPECT_EQ(sheet_of(known)->multiprocessors, 40);
  known.multiprocessors = 0;
  known.fp32 = FlopsPerSecond{2 * known.fp32.si};
  EXPECT_FALSE(sheet_of(known));
  known.multiprocessors = 100;
  const GpuSheet stated = *sheet_of(known);
  EXPECT_EQ(stated.multiprocessors, 100);
  EXPECT_NEAR(stated.fp32_flops(), known.fp32.si, 1e-6 * known.fp32.si);
  platforms::Gpu other = gpu("V100");
  other.name = other.family = "GPU-Y";
  EXPECT_FALSE(sheet_of(other));
  // A GPU of a known name but other multiprocessors is another GPU, whose measurements say nothing.
  known = gpu("V100");
  EXPECT_TRUE(KernelModel(*sheet_of(known)).measured());
  known.multiprocessors = 40;
  EXPECT_FALSE(KernelModel(*sheet_of(known)).measured());
}

double kernels_s(const traces::StepTrace& trace, const char* on) {
  std::vector<StepKernel> kernels = kernels_at(trace, trace.batches[0]);
  predict(kernels, KernelModel(*find_gpu_sheet(on)));
  double sum = 0;
  for (const StepKernel& kernel : kernels) sum += kernel.times * kernel.time.central_s;
  return sum;
}

TEST(KernelTimes, AreSumsOverThePhases) {
  const traces::StepTrace trace = listed({moving("a", 1 << 20, 3), moving("b", 1 << 18), moving("b", 1 << 18)});
  const KernelTimes times = *kernel_times(trace, trace.batches[0], gpu("V100"));
  EXPECT_NEAR(times.phases.at("a").device_s, kernels_s(listed({moving("a", 1 << 20, 3)}), "V100"), 1e-12);
  EXPECT_NEAR(times.phases.at("a").device_s + times.phases.at("b").device_s, kernels_s(trace, "V100"), 1e-12);
  EXPECT_EQ(times.phases.at("a").idle_s, 0);  // a graph is replayed
  EXPECT_EQ(times.provenance, Provenance::kernel_model);
  EXPECT_GT(times.factor, 1.1);
  EXPECT_LT(times.factor, 1.7);  // tens of percent, not a factor of four
  EXPECT_THAT(times.rule, AllOf(HasSubstr("kernel model of V100: 5 kernels"), HasSubstr("decided by elementwise of")));
}

// A hundred small kernels take the GPU less than launching them one by one takes the host. The step is the longer.
TEST(KernelTimes, AStepIsTheLongerOfKernelsAndLaunches) {
  traces::StepTrace trace = listed({moving("a", 16, 300), moving("b", 16, 100)});
  trace.executor = "eager";
  const WorkloadModel eager = transferred_workload(trace, trace.batches[0], gpu("A100-40GB"), nullptr);
  ASSERT_LT(kernels_s(trace, "A100-40GB"), 400 * kEagerLaunch_s);
  EXPECT_NEAR(eager.central.mean_s(), 400 * kEagerLaunch_s, 1e-9);
  EXPECT_THAT(eager.rule, HasSubstr("of waiting for launches"));
  EXPECT_NEAR(eager.high.mean_s(), kEagerLaunchFactor * eager.central.mean_s(), 1e-9);
  trace.executor = "graph";
  const WorkloadModel graph = transferred_workload(trace, trace.batches[0], gpu("A100-40GB"), nullptr);
  EXPECT_NEAR(graph.central.mean_s(), kernels_s(trace, "A100-40GB"), 1e-9);
  trace = listed({moving("a", 1 << 22, 3), moving("b", 1 << 22)});
  trace.executor = "eager";
  const WorkloadModel large = transferred_workload(trace, trace.batches[0], gpu("A100-40GB"), nullptr);
  EXPECT_NEAR(large.central.mean_s(), kernels_s(trace, "A100-40GB"), 1e-9);
  EXPECT_LT(large.low.mean_s(), large.central.mean_s());
  EXPECT_GT(large.high.mean_s(), large.central.mean_s());
}

// Beside each kernel that layers count there is three times its time, at most 130 us on a V100 and less on a GPU with a
// faster memory; a recording of ours lists everything.
TEST(KernelTimes, OfLayersHaveABesideThem) {
  const auto beside = [](std::int64_t cols, const char* on, bool of_layers) {
    const traces::StepTrace trace = listed({moving("a", cols)});
    std::vector<StepKernel> kernels = kernels_at(trace, trace.batches[0]);
    const KernelModel model(*find_gpu_sheet(on));
    predict(kernels, model, of_layers);
    EXPECT_EQ(sum_of(kernels, "graph").beside_s, kernels[0].beside_s);
    EXPECT_EQ(sum_of(kernels, "graph").seconds, kernels[0].time.central_s + kernels[0].beside_s);
    return std::pair(kernels[0].time.central_s, kernels[0].beside_s);
  };
  EXPECT_EQ(beside(1 << 22, "V100", false).second, 0);
  const auto [small_s, beside_small_s] = beside(1 << 8, "V100", true);
  EXPECT_NEAR(beside_small_s, 3 * small_s, 1e-12);
  EXPECT_NEAR(beside(1 << 22, "V100", true).second, 130e-6, 1e-12);
  EXPECT_NEAR(beside(1 << 22, "A100-40GB", true).second, 130e-6 * 900 / 1555, 1e-12);
}

// Both parts of a step are sums of many numbers; what is left of their difference by rounding is no time.
TEST(KernelTimes, OfAGraphDoNotWaitForLaunches) {
  for (std::int64_t cols = 1000; cols < 1100; ++cols) {
    traces::StepTrace trace = listed({moving("a", cols), moving("b", 3 * cols)});
    trace.software.backend = traces::kRooflineBackend, trace.executor = "graph";
    const std::string rule = kernel_times(trace, trace.batches[0], gpu("V100"))->rule;
    ASSERT_THAT(rule, AllOf(HasSubstr("beside them"), Not(HasSubstr("waiting")))) << cols;
  }
}

// No grouped convolution in 16 bits was measured alone; steps of two publications say that they take 2.5 times as long,
// but on Ampere only where cp.async cannot copy pairs of channels.
TEST(KernelTimes, OfGroupedConvolutionsIn16BitsTakeLonger) {
  const auto longer = [](int channels, int groups, const char* precision, const char* gpu) {
    traces::TraceKernel kernel;
    kernel.phase = "a", kernel.kind = Kind::convolution, kernel.grows = Growth::batch, kernel.precision = precision;
    kernel.in_channels = 64, kernel.out_channels = channels, kernel.groups = groups;
    kernel.in = {1, 32, 32}, kernel.window = {1, 3, 3}, kernel.padding = {0, 1, 1};
    const traces::StepTrace trace = listed({kernel});
    const auto time = [&](bool of_layers) {
      std::vector<StepKernel> kernels = kernels_at(trace, trace.batches[0]);
      predict(kernels, KernelModel(*find_gpu_sheet(gpu)), of_layers);
      return kernels[0].time.central_s;
    };
    return time(true) / time(false);
  };
  for (const char* gpu : {"V100", "T4", "A100-40GB", "H100"}) {
    EXPECT_DOUBLE_EQ(longer(60, 4, "fp16", gpu), 2.5) << "15 channels a group, " << gpu;
    EXPECT_DOUBLE_EQ(longer(64, 1, "fp16", gpu), 1) << gpu;
    EXPECT_DOUBLE_EQ(longer(60, 4, "fp32", gpu), 1) << gpu;
  }
  EXPECT_DOUBLE_EQ(longer(56, 4, "fp16", "T4"), 2.5) << "14 channels a group";
  EXPECT_DOUBLE_EQ(longer(56, 4, "bf16", "A100-40GB"), 1);
}

/// A profile of a V100 on which "a" took 1.5 times what the model says and "b" half of it. 4 us passed before the first
/// phase, 3 between them, 10 in "b" without a kernel, and 7 after it.
traces::StepTrace profiled() {
  traces::StepTrace trace = listed({moving("a", 1 << 20), moving("b", 1 << 21)});
  const double a = 1.5 * kernels_s(listed({moving("a", 1 << 20)}), "V100");
  const double b = 0.5 * kernels_s(listed({moving("b", 1 << 21)}), "V100");
  trace.kernels[0].measured_s = a, trace.kernels[1].measured_s = b;
  trace.device.kind = "gpu", trace.device.name = "V100";
  traces::TraceBatch& batch = trace.batches[0];
  batch.phases[0].start_s = {4e-6, 4e-6}, batch.phases[0].seconds = {a, a};
  batch.phases[1].start_s = {7e-6 + a, 7e-6 + a}, batch.phases[1].seconds = {b + 10e-6, b + 10e-6};
  for (traces::TracePhase& phase : batch.phases) phase.host_s = {0, 0};
  batch.wall_s = {a + b + 24e-6, a + b + 24e-6};
  return trace;
}

TEST(KernelTimes, KeepTheResidualOfEachLayerAndWhatWasIdle) {
  const traces::StepTrace trace = profiled();
  const KernelTimes times = *kernel_times(trace, trace.batches[0], gpu("T4"));
  EXPECT_NEAR(times.phases.at("a").device_s, 1.5 * kernels_s(listed({moving("a", 1 << 20)}), "T4"), 1e-12);
  EXPECT_NEAR(times.phases.at("b").device_s, 0.5 * kernels_s(listed({moving("b", 1 << 21)}), "T4"), 1e-12);
  EXPECT_NEAR(times.phases.at("a").idle_s, 4e-6, 1e-12);
  EXPECT_NEAR(times.phases.at("b").idle_s, 13e-6, 1e-12);
  EXPECT_NEAR(times.tail_s, 7e-6, 1e-12);
  EXPECT_EQ(times.provenance, Provenance::transferred);
  EXPECT_THAT(times.rule, HasSubstr("with their residuals on V100"));
}

// A profile carried to a GPU of the same data sheet takes as long as it was recorded to take, also if a kernel was
// given to another phase than it ran in.
TEST(KernelTimes, GiveTheRecordedStepBackOnAnEqualGpu) {
  platforms::Gpu equal = gpu("V100");
  equal.name = "V100 of another cloud";
  traces::StepTrace trace = profiled();
  const double wall = trace.batches[0].wall_s[0];
  EXPECT_NEAR(transferred_workload(trace, trace.batches[0], equal, nullptr).central.mean_s(), wall, 1e-12);
  trace.kernels[0].phase = "b";
  EXPECT_NEAR(transferred_workload(trace, trace.batches[0], equal, nullptr).central.mean_s(), wall, 1e-12);
}

// A compiler joins both kernels of "a": what was measured of both belongs to the joined one.
TEST(KernelTimes, KeepTheResidualsOfFusedKernels) {
  traces::StepTrace trace = listed({moving("a", 1 << 20), moving("a", 1 << 20), moving("b", 1 << 21)});
  trace.executor = "compiled";
  trace.device.kind = "gpu", trace.device.name = "V100";
  const double joined = kernels_s(listed({moving("a", 1 << 20)}), "V100");  // reads and writes once
  trace.kernels[0].measured_s = trace.kernels[1].measured_s = joined, trace.kernels[2].measured_s = 1e-4;
  const KernelTimes times = *kernel_times(trace, trace.batches[0], gpu("T4"));
  EXPECT_NEAR(times.phases.at("a").device_s, 2 * kernels_s(listed({moving("a", 1 << 20)}), "T4"), 1e-12);
}

// An entry that a fit over batch sizes made has the residuals of the recorded one.
TEST(KernelTimes, OfAnotherBatchKeepTheResidualsOfTheRecordedOne) {
  traces::StepTrace trace = profiled();
  traces::TraceBatch twice = trace.batches[0];
  twice.batch *= 2;
  twice.carried.emplace();
  trace.batches.push_back(twice);
  traces::StepTrace larger = listed({moving("a", 1 << 20), moving("b", 1 << 21)});
  larger.batches[0].batch *= 2;
  const double a = kernels_s(listed({moving("a", 1 << 20)}), "V100");
  ASSERT_NE(kernels_s(larger, "V100"), 0);
  larger.kernels.pop_back();
  const KernelTimes times = *kernel_times(trace, trace.batches[1], gpu("T4"));
  EXPECT_NEAR(times.phases.at("a").device_s, trace.kernels[0].measured_s / a * kernels_s(larger, "T4"), 1e-12);
}

// The kernels of another stage of a growing model are not launched in this one.
TEST(KernelTimes, AreThoseOfTheStage) {
  traces::StepTrace trace = profiled();
  const KernelTimes alone = *kernel_times(trace, trace.batches[0], gpu("T4"));
  trace.batches[0].stage = "8";
  for (traces::TraceKernel& kernel : trace.kernels) kernel.stage = "8";
  trace.kernels.push_back(trace.kernels[1]);
  trace.kernels.back().stage = "16";
  const KernelTimes times = *kernel_times(trace, trace.batches[0], gpu("T4"));
  EXPECT_EQ(times.phases.at("b").device_s, alone.phases.at("b").device_s);
  EXPECT_EQ(times.phases.at("b").idle_s, alone.phases.at("b").idle_s);
}

TEST(KernelTimes, NeedAGpuOfKnownMultiprocessorsAndAList) {
  traces::StepTrace trace = listed({moving("a", 1 << 20)});
  platforms::Gpu unknown = gpu("V100");
  unknown.name = unknown.family = "GPU-Y";
  EXPECT_FALSE(kernel_times(trace, trace.batches[0], unknown));
  EXPECT_EQ(transferred_workload(trace, trace.batches[0], unknown, nullptr).provenance, Provenance::transferred);
  trace.kernels.clear();
  EXPECT_FALSE(kernel_times(trace, trace.batches[0], gpu("V100")));
}

// Different kernels' errors partly cancel; equal kernels have equal errors.
TEST(StepSpread, IsLessForManyKernelsThanForOne) {
  const auto spread = [](std::vector<traces::TraceKernel> kernels) {
    const traces::StepTrace trace = listed(std::move(kernels));
    std::vector<StepKernel> step = kernels_at(trace, trace.batches[0]);
    predict(step, KernelModel(*find_gpu_sheet("V100")));
    for (StepKernel& one : step) one.time.low_s = one.time.central_s / 2, one.time.high_s = one.time.central_s * 2;
    return step_spread(step, kListError);
  };
  const double one = spread({moving("a", 1 << 20)});
  EXPECT_NEAR(spread({moving("a", 1 << 20, 9)}), one, 1e-12);
  std::vector<traces::TraceKernel> many;
  for (std::int64_t i = 0; i < 20; ++i) many.push_back(moving("a", (1 << 20) + i));
  EXPECT_LT(spread(many), 0.6 * one);
}

// Layers of one shape are one line, whatever their names and phases.
TEST(Deciding, CountsEqualKernelsTogether) {
  traces::TraceKernel other = moving("b", 1 << 22);
  other.layer = "next";
  const traces::StepTrace trace = listed({moving("a", 1 << 22), other, moving("b", 1 << 21)});
  std::vector<StepKernel> kernels = kernels_at(trace, trace.batches[0]);
  predict(kernels, KernelModel(*find_gpu_sheet("V100")));
  EXPECT_THAT(deciding(kernels, 3), testing::MatchesRegex("elementwise of layer in a and 1 like it 8[0-9] %, "
                                                          "elementwise of layer in b [12][0-9] %"));
}

TEST(Executor, IsThatOfTheSoftwareIfTheTraceStatesNone) {
  traces::StepTrace trace = constant_trace(1);
  trace.software = {"layer list", "m", std::string(traces::kRooflineBackend)};
  EXPECT_EQ(executor_of(trace), "eager");
  trace.software = {"PyTorch", "2", "profiler"};
  EXPECT_EQ(executor_of(trace), "eager");
  trace.software = {"ganymede", "1", "eigen"};
  EXPECT_EQ(executor_of(trace), "graph");
  EXPECT_EQ(host_launch_s("graph"), 0);
  EXPECT_GT(host_launch_s("eager"), 0);
}

}  // namespace
}  // namespace ganymede::calibration
