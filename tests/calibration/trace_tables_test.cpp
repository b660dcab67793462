#include "calibration/trace_tables.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/made_up.hpp"

namespace ganymede::calibration {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

// Steps of 10 ms; of each, 3 ms are the discriminator's backward pass with 3 GFLOP: 1 TFLOP/s of the 10 of the device.
TEST(TraceTables, GiveEachPhaseItsShareAndItsRate) {
  const std::string table = phase_table(constant_trace(20));
  EXPECT_THAT(table, AllOf(HasSubstr("GPU-X, backend eigen: products 10 TFLOP/s"), HasSubstr("step (20 recorded)")));
  const std::string row = table.substr(table.find("discriminator.backward"), 120);
  EXPECT_THAT(row, AllOf(HasSubstr("3 ms"), HasSubstr("30.0 %"), HasSubstr("1 TFLOP/s"), HasSubstr("10 % + ")));
}

TEST(TraceTables, NeedSeveralSizesForAFit) {
  EXPECT_THAT(fit_table(constant_trace(20)), HasSubstr("No fit over batch sizes: 1 of "));
}

// Two halves of the steps that take one and three times as long: their mean is of no use.
TEST(TraceTables, WarnOfStepsThatVary) {
  EXPECT_THAT(noise_warning(constant_trace(400)), IsEmpty());
  std::vector<double> scale(400, 1e-3);
  std::fill(scale.begin() + 200, scale.end(), 3e-3);
  traces::StepTrace noisy = made_up_trace(scale);
  noisy.batches[0].utilization = traces::TraceUtilization{.interval_s = 0.1, .samples = {{"cpu_wait", {1, 2}}}};
  EXPECT_EQ(mean_waiting_threads(noisy.batches[0]), 1.5);
  EXPECT_THAT(noise_warning(noisy), AllOf(HasSubstr("TOO NOISY: the mean step at batch 64"), HasSubstr("1.5 threads")));
}

TEST(TraceTables, WriteTheEntryOfADeviceThatNoCatalogHas) {
  EXPECT_THAT(gpu_entry(constant_trace(2).device),
              AllOf(HasSubstr("No catalog has \"GPU-X\""), HasSubstr("\"fp32\":\"10000.0Gflop/s\"")));
  EXPECT_THAT(gpu_entry(constant_trace(2, 1e-3, "V100").device), IsEmpty());
}

}  // namespace
}  // namespace ganymede::calibration
