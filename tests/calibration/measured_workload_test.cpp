#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "calibration/statistics.hpp"
#include "calibration/workload_model.hpp"
#include "common/units.hpp"
#include "support/made_up.hpp"

namespace ganymede::calibration {
namespace {

using testing::HasSubstr;

constexpr double kTolerance = 1e-15;

TEST(MeasuredWorkload, TakesEachStepAsLongAsItTook) {
  const traces::StepTrace trace = made_up_trace({1e-3, 2e-3, 1.5e-3, 4e-3});
  const traces::TraceBatch& batch = trace.batches.front();
  const StepModel model = measured_workload(trace, batch, 0, 4).central;
  ASSERT_EQ(model.samples, 4U);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(model.step_s(i), batch.wall_s[i], kTolerance);
  // The idle half before the generator's phases, and the half after the last.
  EXPECT_NEAR(model.phases[2].gap_s[1], 0.5 * 2e-3, kTolerance);
  EXPECT_NEAR(model.tail_s[3], 0.5 * 4e-3, kTolerance);
  EXPECT_EQ(model.phases[0].gap_s[0], 0);
  EXPECT_FALSE(model.serial_host);
}

TEST(MeasuredWorkload, TakesAPartOfTheTrace) {
  const traces::StepTrace trace = made_up_trace({1e-3, 2e-3, 3e-3, 4e-3});
  const WorkloadModel workload = measured_workload(trace, trace.batches.front(), 1, 2);
  ASSERT_EQ(workload.central.samples, 2U);
  EXPECT_NEAR(workload.central.step_s(0), 20e-3, kTolerance);
  EXPECT_NEAR(workload.central.step_s(1), 30e-3, kTolerance);
  EXPECT_NEAR(workload.central.mean_s(), 25e-3, kTolerance);
}

TEST(MeasuredWorkload, KeepsBucketsWithTheirPhases) {
  const traces::StepTrace trace = constant_trace(2);
  const StepModel model = measured_workload(trace, trace.batches.front(), 0, 2).central;
  ASSERT_EQ(model.buckets.size(), 3U);
  EXPECT_EQ(model.buckets[0].bytes, 4'000'000);
  EXPECT_EQ(model.phases[model.buckets[0].phase].name, "discriminator.backward");
  EXPECT_EQ(model.phases[model.buckets[1].phase].name, "generator.backward");
  EXPECT_EQ(model.buckets[1].ready_fraction, 0.5);
}

/// The trace with a loading phase of `seconds` at `start` in every step of 10 ms.
traces::StepTrace with_loading(double start, double seconds) {
  traces::StepTrace trace = constant_trace(8);
  traces::TracePhase load = made_up_phase("load", "", start, seconds, std::vector<double>(8, 1e-3));
  load.stream = "host";
  auto& phases = trace.batches.front().phases;
  phases.insert(std::find_if(phases.begin(), phases.end(),
                             [&](const traces::TracePhase& phase) { return phase.start_s[0] > load.start_s[0]; }),
                load);
  return trace;
}

TEST(MeasuredWorkload, LoadingBetweenThePhasesIsPartOfTheStep) {
  const traces::StepTrace trace = with_loading(4, 0.5);  // fills the gap before the generator
  const StepModel model = measured_workload(trace, trace.batches.front(), 0, 8).central;
  ASSERT_EQ(model.phases[2].name, "load");
  EXPECT_EQ(model.phases[2].stream, Stream::compute);
  EXPECT_NEAR(model.phases[3].gap_s[0], 0, kTolerance);
  for (std::size_t i = 0; i < 8; ++i) EXPECT_NEAR(model.step_s(i), 10e-3, kTolerance);
}

TEST(MeasuredWorkload, LoadingBesideThePhasesIsAStageOfTheInput) {
  const traces::StepTrace trace = with_loading(0.5, 6);
  const StepModel model = measured_workload(trace, trace.batches.front(), 0, 8).central;
  ASSERT_EQ(model.phases[1].name, "load");
  EXPECT_EQ(model.phases[1].stream, Stream::input);
  EXPECT_NEAR(model.phases[1].device_s[0], 6e-3, kTolerance);
  for (std::size_t i = 0; i < 8; ++i) EXPECT_NEAR(model.step_s(i), 10e-3, kTolerance);
}

TEST(MeasuredWorkload, SaysHowFarToTrustIt) {
  std::vector<double> scale(300, 1e-3);
  for (std::size_t i = 150; i < 300; ++i) scale[i] = 1.2e-3;
  const traces::StepTrace trace = made_up_trace(scale);
  const WorkloadModel workload = measured_workload(trace, trace.batches.front(), 0, 300);
  const BlockMean spread = block_mean(trace.batches.front().wall_s, kBlockSteps);
  EXPECT_EQ(workload.provenance, Provenance::measured);
  EXPECT_EQ(to_string(workload.provenance), "measured");
  // Both runs deviate independently, each by kRunDrift.
  const double drift = 1.96 * std::sqrt(2.0) * kRunDrift;
  EXPECT_DOUBLE_EQ(workload.relative_error, std::hypot(spread.half_width / spread.mean, drift));
  EXPECT_THAT(workload.rule, HasSubstr("measured on GPU-X (ganymede 0.1.0, eigen), 300 steps at batch 64"));
  EXPECT_TRUE(workload.warnings.empty());
}

TEST(MeasuredWorkload, OfOneStepKnowsNothingOfItsError) {
  const traces::StepTrace trace = constant_trace(1);
  const WorkloadModel workload = measured_workload(trace, trace.batches.front(), 0, 1);
  EXPECT_GE(workload.relative_error, 1);
  ASSERT_EQ(workload.warnings.size(), 1U);
  EXPECT_THAT(workload.warnings[0], HasSubstr("too short"));
}

TEST(MeasuredWorkload, ASerialHostStaysSerial) {
  traces::StepTrace trace = constant_trace(2);
  trace.host = "serial";
  EXPECT_TRUE(measured_workload(trace, trace.batches.front(), 0, 2).central.serial_host);
}

TEST(WorkloadOn, TheDeviceOfTheTraceIsMeasuredAndAnyOtherTransferred) {
  const traces::StepTrace trace = constant_trace(4);
  platforms::Gpu gpu;
  gpu.fp32 = FlopsPerSecond{1e13};
  gpu.memory_bandwidth = BytesPerSecond{1e12};
  gpu.name = "GPU-X";
  EXPECT_EQ(workload_on(trace, trace.batches.front(), gpu, nullptr).provenance, Provenance::measured);
  EXPECT_EQ(workload_on(trace, trace.batches.front(), gpu, nullptr).central.samples, 4U);
  gpu.name = "GPU-Y";
  EXPECT_EQ(workload_on(trace, trace.batches.front(), gpu, nullptr).provenance, Provenance::transferred);
}

}  // namespace
}  // namespace ganymede::calibration
