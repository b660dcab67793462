#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>

#include "calibration/workload_model.hpp"
#include "common/errors.hpp"
#include "common/units.hpp"
#include "support/made_up.hpp"

namespace ganymede::calibration {
namespace {

using namespace literals;
using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

/// 10 TFLOP/s, 900 GB/s, a launch 4 us: at the central shares 5 TFLOP/s and 750 GB/s.
platforms::Gpu target() {
  platforms::Gpu gpu;
  gpu.name = "GPU-Y";
  gpu.memory = 16_GiB;
  gpu.fp32 = 10.0_Tflop_per_s;
  gpu.memory_bandwidth = 900_GB_per_s;
  gpu.launch = 4_us;
  return gpu;
}

/// A trace of one phase with that work in each step.
traces::StepTrace one_phase(double flops, double bytes_read, double bytes_written, std::int64_t launches) {
  traces::StepTrace trace = constant_trace(4);
  trace.device.kind = "cpu";
  traces::TraceBatch& batch = trace.batches.front();
  batch.buckets.clear();
  batch.phases.resize(1);
  batch.phases[0].flops = flops;
  batch.phases[0].bytes_read = bytes_read;
  batch.phases[0].bytes_written = bytes_written;
  batch.phases[0].launches = launches;
  return trace;
}

WorkloadModel transferred(const traces::StepTrace& trace, const platforms::Link* host_link = nullptr) {
  return transferred_workload(trace, trace.batches.front(), target(), host_link);
}

// In each case the central model takes the longest of the three, the low one the longest at full peak, and the high one
// the sum at 15 % of the peak, 40 % of the bandwidth and 9.6 / 3.8 of the launch time.
struct RooflineCase {
  const char* bound_by;
  double flops, bytes_read, bytes_written;
  std::int64_t launches;
  double low_s, central_s, high_s;
};

class Roofline : public testing::TestWithParam<RooflineCase> {};

TEST_P(Roofline, TakesWhatBindsIt) {
  const RooflineCase& work = GetParam();
  const WorkloadModel workload = transferred(one_phase(work.flops, work.bytes_read, work.bytes_written, work.launches));
  EXPECT_NEAR(workload.low.mean_s() / work.low_s, 1, 1e-12);
  EXPECT_NEAR(workload.central.mean_s() / work.central_s, 1, 1e-12);
  EXPECT_NEAR(workload.high.mean_s() / work.high_s, 1, 1e-12);
}

constexpr double kLaunchWaited = 4e-6 * 9.6 / 3.8;

INSTANTIATE_TEST_SUITE_P(Phases, Roofline,
                         testing::Values(
                             // 100 launches at 4 us; 50 MFLOP take 5 to 10 us, 9 MB take 10 to 12 us.
                             RooflineCase{"launching", 50e6, 6e6, 3e6, 100, 400e-6, 400e-6,
                                          100 * kLaunchWaited + 50e6 / 1.5e12 + 9e6 / 360e9},
                             // 50 GFLOP take 5 ms at the peak and 10 ms at half of it.
                             RooflineCase{"computing", 50e9, 6e6, 3e6, 10, 5e-3, 10e-3,
                                          10 * kLaunchWaited + 50e9 / 1.5e12 + 9e6 / 360e9},
                             // 900 MB take 1 ms at 900 GB/s and 1.2 ms at 750 GB/s.
                             RooflineCase{"memory", 50e6, 500e6, 400e6, 10, 1e-3, 1.2e-3,
                                          10 * kLaunchWaited + 50e6 / 1.5e12 + 900e6 / 360e9}),
                         [](const auto& test) { return test.param.bound_by; });

TEST(TransferredWorkload, KeepsThePhasesBucketsAndLaunchesOfTheTrace) {
  const traces::StepTrace trace = constant_trace(4);
  const StepModel model = transferred(trace).central;
  ASSERT_EQ(model.phases.size(), 4U);
  EXPECT_EQ(model.samples, 1U);
  EXPECT_EQ(model.phases[2].name, "generator.backward");
  EXPECT_EQ(model.phases[2].flops, 4e9);
  EXPECT_DOUBLE_EQ(model.phases[2].host_s[0], 10 * 4e-6);  // ten launches keep the host busy
  ASSERT_EQ(model.buckets.size(), 3U);
  EXPECT_EQ(model.buckets[1].phase, 2U);
  // The gaps and the tail of the recording machine's step are not carried over.
  EXPECT_EQ(model.tail_s[0] + model.phases[2].gap_s[0], 0);
}

TEST(PeakRate, IsThatOfTheTracesPrecision) {
  platforms::Gpu gpu;
  gpu.fp32 = FlopsPerSecond{19.5e12};
  traces::StepTrace trace = constant_trace(1);
  trace.precision = "bf16";
  EXPECT_EQ(peak_rate(trace, gpu), gpu.fp32);  // no tensor-core rate is given
  gpu.tensor = FlopsPerSecond{312e12};
  EXPECT_EQ(peak_rate(trace, gpu), *gpu.tensor);
  trace.precision = "tf32";
  EXPECT_EQ(peak_rate(trace, gpu), *gpu.tensor / 2);
  gpu.kind = platforms::Gpu::Kind::tpu;  // which computes it in FP32
  EXPECT_EQ(peak_rate(trace, gpu), gpu.fp32);
  trace.precision = "fp32";
  EXPECT_EQ(peak_rate(trace, gpu), gpu.fp32);
}

traces::StepTrace with_input() {
  traces::StepTrace trace = constant_trace(4);
  traces::TracePhase load = made_up_phase("load", "", 0.5, 2, std::vector<double>(4, 1e-3));
  load.stream = "host";
  traces::TracePhase copy = made_up_phase("copy", "", 1, 1, std::vector<double>(4, 1e-3));
  copy.stream = "copy";
  copy.bytes_read = 5e6;
  auto& phases = trace.batches.front().phases;
  phases.insert(phases.begin(), {load, copy});
  return trace;
}

// Reading a batch takes the recorded 2 ms; copying its 5 MB at 10 GB/s with a latency of 3 us takes 503 us, whatever
// the recorded copy took.
TEST(TransferredWorkload, ReadsAheadAndCopiesOverTheTargetsHostLink) {
  const platforms::Link host_link{10_GB_per_s, 3_us, "datasheet", {}};
  const StepModel model = transferred(with_input(), &host_link).central;
  ASSERT_EQ(model.phases.size(), 6U);
  EXPECT_EQ(model.phases[0].name, "load");
  EXPECT_EQ(model.phases[0].stream, Stream::input);
  EXPECT_NEAR(model.phases[0].device_s[0], 2e-3, 1e-15);
  EXPECT_EQ(model.phases[1].name, "copy");
  EXPECT_EQ(model.phases[1].stream, Stream::input);
  EXPECT_NEAR(model.phases[1].device_s[0], 503e-6, 1e-15);
  EXPECT_EQ(model.buckets[0].phase, 2U);
  EXPECT_EQ(transferred(with_input()).central.phases.size(), 5U);  // no host link: the copy is not timed
}

// On GPU-X convolutions reach 70 % of the measured 10 TFLOP/s: 10 GFLOP take 1.43 ms, and 9 MB 0.01 ms at 900 GB/s. On
// GPU-Y they reach 55 % of 20 TFLOP/s, and copies 86 % of 1800 GB/s. Whatever else made the phase last 4 ms stays.
TEST(TransferredWorkload, BetweenGpusAPhaseKeepsItsEfficiency) {
  traces::StepTrace trace = one_phase(10e9, 6e6, 3e6, 1);
  trace.device.kind = "gpu";
  for (double& seconds : trace.batches.front().phases[0].seconds) seconds = 4e-3;
  platforms::Gpu faster = target();
  faster.fp32 = 20.0_Tflop_per_s;
  faster.memory_bandwidth = 1800_GB_per_s;
  const WorkloadModel workload = transferred_workload(trace, trace.batches.front(), faster, nullptr);
  const double here = 10e9 / 11e12 + 9e6 / 1548e9, there = 10e9 / 7e12 + 9e6 / 900e9;
  const double expected = 4e-3 * std::pow(here / there, 0.9);
  EXPECT_NEAR(workload.central.mean_s(), expected, 1e-9);
  // Half of ln(11 / 7) + ln(1548 / 900) is the distance of the limits; neither GPU is known.
  const double error = std::exp(1.5 * (0.05 + 0.35 * 0.5 * (std::log(11.0 / 7) + std::log(1548.0 / 900))));
  EXPECT_NEAR(workload.high.mean_s(), expected * error, 1e-9);
  EXPECT_NEAR(workload.low.mean_s(), expected / error, 1e-9);
  EXPECT_THAT(workload.rule, HasSubstr("by what trainings reach of both"));
}

TEST(TransferredWorkload, IsLessSureOfADistantGpu) {
  traces::StepTrace trace = one_phase(10e9, 3e6, 3e6, 1);
  trace.device.kind = "gpu";
  const auto width = [&](double factor) {
    platforms::Gpu other = target();
    other.fp32 = FlopsPerSecond{factor * 7e12 / 0.55};
    other.memory_bandwidth = BytesPerSecond{factor * 900e9 / 0.86};
    const WorkloadModel workload = transferred_workload(trace, trace.batches.front(), other, nullptr);
    return workload.high.mean_s() / workload.low.mean_s();
  };
  EXPECT_NEAR(width(1), std::exp(2 * 1.5 * 0.05), 1e-6);  // the same limits: only what two like GPUs differ by
  EXPECT_GT(width(1.5), width(1));
  EXPECT_GT(width(2), 1.3);
  EXPECT_GE(width(8), width(2));
  EXPECT_NEAR(width(0.5), width(2), 1e-9);
}

// 10 GFLOP in 0.2 ms are 50 TFLOP/s on a GPU that states 10: Winograd does less arithmetic than is counted.
TEST(TransferredWorkload, BelievesATraceThatIsFasterThanItsDevicesLimitsAndSaysSo) {
  traces::StepTrace trace = one_phase(10e9, 3e6, 3e6, 1);
  trace.device.kind = "gpu";
  const auto predicted = [&](double measured_s) {
    for (double& seconds : trace.batches.front().phases[0].seconds) seconds = measured_s;
    return transferred_workload(trace, trace.batches.front(), target(), nullptr);
  };
  const WorkloadModel fast = predicted(0.2e-3), slow = predicted(2e-3);
  EXPECT_NEAR(fast.central.mean_s() / slow.central.mean_s(), 0.1, 1e-9);
  EXPECT_THAT(fast.warnings, Contains(HasSubstr("faster in the trace than the stated limits of GPU-X")));
  EXPECT_THAT(slow.warnings, Not(Contains(HasSubstr("faster in the trace"))));
}

// 100 launches of 4 us take up most of the 0.5 ms, on any GPU.
TEST(TransferredWorkload, APhaseBoundByLaunchingKeepsItsTime) {
  traces::StepTrace trace = one_phase(1e6, 3e3, 3e3, 100);
  trace.device.kind = "gpu";
  for (double& seconds : trace.batches.front().phases[0].seconds) seconds = 0.5e-3;
  platforms::Gpu faster = target();
  faster.fp32 = 100.0_Tflop_per_s;
  faster.memory_bandwidth = 9000_GB_per_s;
  EXPECT_NEAR(transferred_workload(trace, trace.batches.front(), faster, nullptr).central.mean_s(), 0.5e-3, 1e-12);
}

TEST(TransferredWorkload, SaysWhereItComesFromAndWarns) {
  traces::StepTrace trace = constant_trace(4);
  trace.device.kind = "cpu";
  const WorkloadModel workload = transferred(trace);
  EXPECT_EQ(workload.provenance, Provenance::transferred);
  EXPECT_EQ(to_string(workload.provenance), "transferred");
  EXPECT_THAT(workload.rule, AllOf(HasSubstr("from GPU-X to GPU-Y by roofline"), HasSubstr("50 % of"),
                                   HasSubstr("10 TFLOP/s"), HasSubstr("83 % of"), HasSubstr("900 GB/s")));
  EXPECT_THAT(workload.warnings, Contains(HasSubstr("are not measured but carried over from GPU-X")));
  EXPECT_THAT(workload.warnings, Not(Contains(HasSubstr("launch time"))));
}

// Between GPUs, the mix of work is then that of other trainings; for a CPU nothing is known.
TEST(TransferredWorkload, AProfilerTraceWithoutFlopsGoesToOtherGpusAlone) {
  traces::StepTrace trace = constant_trace(10);
  trace.software = {"PyTorch", "2.5", "profiler"};
  for (traces::TracePhase& phase : trace.batches[0].phases) {
    phase.flops = 0;
    phase.bytes_read = phase.bytes_written = 0;
  }
  platforms::Gpu other = target();
  const WorkloadModel workload = transferred_workload(trace, trace.batches[0], other, nullptr);
  EXPECT_GT(workload.central.mean_s(), 0);
  EXPECT_THAT(workload.rule, HasSubstr("counts no FLOPs"));
  other.kind = platforms::Gpu::Kind::cpu;
  EXPECT_THROW(transferred_workload(trace, trace.batches[0], other, nullptr), ConfigError);
}

// The times of a list of layers were not measured on any device.
TEST(TransferredWorkload, OfCountedLayersIsADatasheets) {
  traces::StepTrace trace = constant_trace(10);
  trace.software = {"layer list", "m", "roofline"};
  platforms::Gpu target;
  target.name = "other";
  target.fp32 = FlopsPerSecond{1e12};
  target.memory_bandwidth = BytesPerSecond{1e11};
  const WorkloadModel workload = transferred_workload(trace, trace.batches[0], target, nullptr);
  EXPECT_EQ(workload.provenance, Provenance::datasheet);
  EXPECT_NE(workload.rule.find("counted from the layers"), std::string::npos);
}

// A list of layers says that a phase takes 1.3 times as long as its work at its device's limits.
TEST(TransferredWorkload, OfCountedLayersKeepsTheListsSlowdowns) {
  traces::StepTrace trace = one_phase(10e9, 0, 0, 1);
  trace.device.kind = "gpu";
  trace.software = {"layer list", "m", "roofline"};
  const auto predicted = [&](double seconds) {
    for (double& time : trace.batches.front().phases[0].seconds) time = seconds;
    return transferred_workload(trace, trace.batches.front(), target(), nullptr);
  };
  EXPECT_NEAR(predicted(1.3e-3).central.mean_s(), 2e-3, 1e-9);  // no launch time is stated: an older trace
  trace.device.launch = 4_us;
  EXPECT_NEAR(predicted(1.3e-3).central.mean_s(), 1.3 * 2e-3, 1e-9);
  EXPECT_NEAR(predicted(1e-3).central.mean_s(), 2e-3, 1e-9);
  EXPECT_LT(predicted(1.3e-3).low.mean_s(), predicted(1.3e-3).central.mean_s());
}

TEST(TransferredWorkload, WarnsWhereThePlatformGivesNoLaunchTime) {
  const traces::StepTrace trace = constant_trace(4);
  platforms::Gpu gpu = target();
  gpu.launch = 0_s;
  const WorkloadModel workload = transferred_workload(trace, trace.batches.front(), gpu, nullptr);
  EXPECT_THAT(workload.warnings, Contains(HasSubstr("gives no launch time for GPU-Y")));
}

RC_GTEST_PROP(TransferredWorkload, IsBoundedByLowAndHigh, ()) {
  const auto amount = [](double unit) { return unit * *rc::gen::inRange(0, 1'000'000); };
  traces::StepTrace trace = constant_trace(2);
  for (auto& phase : trace.batches.front().phases) {
    phase.flops = amount(1e5);
    phase.bytes_read = amount(1e3);
    phase.bytes_written = amount(1e3);
    phase.launches = *rc::gen::inRange(0, 1000);
  }
  const WorkloadModel workload = transferred(trace);
  for (std::size_t i = 0; i < workload.central.phases.size(); ++i) {
    RC_ASSERT(workload.low.phases[i].device_s[0] <= workload.central.phases[i].device_s[0]);
    RC_ASSERT(workload.central.phases[i].device_s[0] <= workload.high.phases[i].device_s[0]);
  }
  RC_ASSERT(workload.low.mean_s() <= workload.central.mean_s());
  RC_ASSERT(workload.central.mean_s() <= workload.high.mean_s());
}

}  // namespace
}  // namespace ganymede::calibration
