#include "calibration/batch_fit.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "calibration/workload_model.hpp"
#include "common/errors.hpp"
#include "common/units.hpp"
#include "support/made_up.hpp"

namespace ganymede::calibration {
namespace {

using testing::HasSubstr;

std::vector<PhaseFit::Point> points(const std::vector<double>& batches, double (*seconds)(double)) {
  std::vector<PhaseFit::Point> out;
  for (const double batch : batches) out.push_back({batch, seconds(batch)});
  return out;
}

const std::vector<double> kSizes = {4, 8, 16, 32, 64, 128, 256};

// Launching takes 100 us, which binds up to a batch of 25; beyond it are 50 us for weights and 2 us for each image.
TEST(PhaseFit, FindsTheThreeRegimes) {
  const PhaseFit fit(points(kSizes, [](double b) { return std::max(100e-6, 50e-6 + 2e-6 * b); }));
  EXPECT_NEAR(fit.floor_s, 100e-6, 1e-9);
  EXPECT_NEAR(fit.fixed_s, 50e-6, 1e-8);
  EXPECT_NEAR(fit.per_image_s, 2e-6, 1e-9);
  EXPECT_EQ(fit.bound_by(4), "launch");
  EXPECT_THAT(fit.bound_by(256), HasSubstr("91 % per image"));
  EXPECT_NEAR(fit.seconds(12), 100e-6, 1e-9);
  EXPECT_NEAR(fit.seconds(48), 146e-6, 1e-9);
  EXPECT_NEAR(fit.seconds(512), 1074e-6, 1e-8);
}

TEST(PhaseFit, OneDisturbedSizeHardlyMovesTheOthers) {
  auto disturbed = points(kSizes, [](double b) { return 50e-6 + 2e-6 * b; });
  disturbed[3].seconds *= 3;
  const PhaseFit fit(disturbed);
  for (const double batch : {4.0, 128.0, 256.0, 512.0})
    EXPECT_NEAR(fit.seconds(batch) / (50e-6 + 2e-6 * batch), 1, 0.05) << batch;
  // At the disturbed size itself at most a tenth is followed.
  EXPECT_LT(fit.seconds(32) / (50e-6 + 2e-6 * 32), 1.2);
}

// A cache that larger batches overflow bends the curve; between recorded sizes the bend is interpolated.
TEST(PhaseFit, FollowsWhatIsNoRoofline) {
  const PhaseFit fit(points(kSizes, [](double b) { return 1e-6 * std::pow(b, 1.05); }));
  for (const double batch : {6.0, 24.0, 100.0, 200.0})
    EXPECT_NEAR(fit.seconds(batch) / (1e-6 * std::pow(batch, 1.05)), 1, 0.02) << batch;
}

/// Entries in which a tenth of the time of each compute phase is fixed and the rest is proportional to the batch.
traces::StepTrace by_batch(const std::vector<int>& sizes) {
  traces::StepTrace trace = constant_trace(8);
  const traces::TraceBatch unit = trace.batches.front();
  trace.batches.clear();
  for (const int size : sizes) {
    traces::TraceBatch& entry = trace.batches.emplace_back(unit);
    const double factor = 0.1 + 0.9 * size / 64;
    entry.batch = size;
    entry.memory_bytes = {{"parameters", 1e6}, {"activations", 1e4 * size}};
    for (traces::TracePhase& phase : entry.phases) {
      phase.flops *= size / 64.0;
      for (auto* times : {&phase.start_s, &phase.seconds, &phase.host_s})
        for (double& time : *times) time *= factor;
    }
    for (double& wall : entry.wall_s) wall *= factor;
  }
  return trace;
}

TEST(BatchModel, CarriesAnEntryToAnotherSize) {
  traces::StepTrace trace = by_batch({8, 16, 32, 64, 128, 256});
  const traces::TraceBatch recorded = trace.batches[3];
  const std::size_t at = entry_for(trace, "", 96);
  ASSERT_EQ(at, 6U);
  const traces::TraceBatch& entry = trace.batches[at];
  const double factor = 0.1 + 0.9 * 96 / 64;
  ASSERT_EQ(entry.batch, 96);
  for (std::size_t i = 0; i < entry.wall_s.size(); ++i) EXPECT_NEAR(entry.wall_s[i] / recorded.wall_s[i], factor, 1e-6);
  for (std::size_t p = 0; p < entry.phases.size(); ++p) {
    EXPECT_NEAR(entry.phases[p].seconds[2] / recorded.phases[p].seconds[2], factor, 1e-6);
    EXPECT_NEAR(entry.phases[p].start_s[2], recorded.phases[p].start_s[2] * factor, 1e-9);
    EXPECT_NEAR(entry.phases[p].flops, recorded.phases[p].flops * 1.5, 1);
  }
  EXPECT_DOUBLE_EQ(entry.memory_bytes.at("activations"), 96e4);
  EXPECT_DOUBLE_EQ(entry.memory_bytes.at("parameters"), 1e6);
  ASSERT_TRUE(entry.carried);
  EXPECT_LT(entry.carried->relative_error, 1e-4);
  EXPECT_TRUE(entry.carried->warnings.empty());
  const WorkloadModel workload = measured_workload(trace, entry, 0, entry.wall_s.size());
  EXPECT_THAT(workload.rule, HasSubstr("at batch 96 by a fit over 6 batch sizes from 8 to 256"));
  EXPECT_NEAR(workload.central.mean_s() / (recorded.wall_s[0] * factor), 1, 1e-6);
  EXPECT_EQ(entry_for(trace, "", 32), 2U);  // recorded ones stay
}

// As lazy regularisation, which the median step does not have.
TEST(BatchModel, CarriesAPhaseThatFewStepsHaveByTheirMean) {
  traces::StepTrace trace = by_batch({8, 16, 32, 64, 128, 256});
  for (traces::TraceBatch& entry : trace.batches) {
    std::vector<double>& seconds = entry.phases.back().seconds;
    for (std::size_t i = 0; i < seconds.size(); ++i) {
      const double lazy = i % 4 == 0 ? 10 * (0.1 + 0.9 * entry.batch / 64.0) : 1e-6;
      entry.wall_s[i] += lazy - seconds[i];
      seconds[i] = lazy;
    }
  }
  const std::size_t at = entry_for(trace, "", 96);
  EXPECT_NEAR(trace.batches[at].phases.back().seconds[0], 10 * (0.1 + 0.9 * 96 / 64), 0.05);
}

TEST(BatchModel, LeavesOutEachSizeTheExtremesToo) {
  traces::StepTrace trace = by_batch({8, 16, 32, 64, 128, 256});
  // The largest size takes 1.5 times as long as the others suggest.
  for (traces::TracePhase& phase : trace.batches.back().phases)
    for (auto* times : {&phase.start_s, &phase.seconds})
      for (double& time : *times) time *= 1.5;
  for (double& wall : trace.batches.back().wall_s) wall *= 1.5;
  std::vector<const traces::TraceBatch*> entries;
  for (const auto& entry : trace.batches) entries.push_back(&entry);
  const BatchModel model(entries);
  ASSERT_EQ(model.leave_one_out().size(), 6U);
  EXPECT_EQ(model.leave_one_out().front().batch, 8);
  EXPECT_EQ(model.leave_one_out().back().batch, 256);
  EXPECT_NEAR(model.leave_one_out().back().error(), 1 / 1.5 - 1, 0.01);
  EXPECT_NEAR(model.worst_error(), 1 - 1 / 1.5, 0.01);
  EXPECT_GT(model.at(96).carried->relative_error, 0.2);
}

TEST(BatchModel, WarnsBeyondTheRangeAndOfFewSizes) {
  traces::StepTrace trace = by_batch({16, 32, 64});
  const std::size_t at = entry_for(trace, "", 512);
  EXPECT_THAT(trace.batches[at].carried->warnings,
              testing::ElementsAre(HasSubstr("batch 512 lies beyond the calibrated range of 16 to 64"),
                                   HasSubstr("from 3 of them only")));
}

TEST(BatchModel, SaysSoOnAnotherDeviceToo) {
  traces::StepTrace trace = by_batch({16, 32, 64});
  const std::size_t at = entry_for(trace, "", 512);
  platforms::Gpu other;
  other.name = "GPU-Y";
  other.fp32 = FlopsPerSecond{20e12};
  other.memory_bandwidth = BytesPerSecond{1800e9};
  const WorkloadModel workload = transferred_workload(trace, trace.batches[at], other, nullptr);
  EXPECT_THAT(workload.rule, HasSubstr("at batch 512 by a fit over 3 batch sizes"));
  EXPECT_THAT(workload.warnings, testing::Contains(HasSubstr("lies beyond the calibrated range of 16 to 64")));
}

TEST(BatchModel, NeedsThreeSizes) {
  traces::StepTrace trace = by_batch({16, 32});
  try {
    entry_for(trace, "", 64);
    FAIL() << "expected a ConfigError";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), testing::AllOf(HasSubstr("(16, 32)"), HasSubstr("ganymede calibrate --model")));
  }
}

TEST(BatchModel, NeedsTheSamePhases) {
  traces::StepTrace trace = by_batch({16, 32, 64});
  trace.batches[1].phases[0].name = "other";
  EXPECT_THROW(entry_for(trace, "", 48), ConfigError);
}

}  // namespace
}  // namespace ganymede::calibration
