#include "calibration/batch_step.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace ganymede::calibration {
namespace {

TEST(StepAtBatch, OfTheMeasuredSizeIsTheMeasuredTime) {
  const StepAtBatch step = step_at_batch(0.5, 1, 2);
  EXPECT_EQ(step.central_s, 0.5);
  EXPECT_EQ(step.low_s, 0.5);
  EXPECT_EQ(step.high_s, 0.5);
}

// Two networks of 50 ms: 0.1 / (0.1 + 0.9) = a tenth of a step of 0.9 s does not depend on the batch.
TEST(StepAtBatch, HasAFixedPartAndAPartForEachImage) {
  const auto time = [](double fixed_s, double ratio) { return 0.9 * (fixed_s + 0.9 * ratio) / (fixed_s + 0.9); };
  EXPECT_NEAR(step_at_batch(0.9, 0.5, 2, 0, 0.05).central_s, 0.9 * (0.1 + 0.9 * 0.5), 1e-12);
  EXPECT_NEAR(step_at_batch(0.9, 2, 2, 0, 0.05).central_s, 0.9 * (0.1 + 0.9 * 2), 1e-12);
  const StepAtBatch step = step_at_batch(0.9, 0.5, 2, 0, 0.05);
  EXPECT_NEAR(step.low_s, time(0.25 * 0.1, 0.5) / 1.05, 1e-12);
  EXPECT_NEAR(step.high_s, time(8 * 0.1, 0.5) * 1.05, 1e-12);
}

// With the exponent 1 it goes as the bandwidth does.
TEST(StepAtBatch, FixedPartIsShorterOnAFasterGpu) {
  EXPECT_EQ(fixed_per_network(900e9), kFixedPerNetwork_s);
  EXPECT_NEAR(fixed_per_network(1800e9, 0.05, 1), 0.025, 1e-12);
  EXPECT_NEAR(fixed_per_network(225e9, 0.05, 0.5), 0.1, 1e-12);
}

TEST(StepAtBatch, LiesBetweenUnchangedAndInProportion) {
  for (const double measured_s : {1e-3, 0.03, 0.3, 3.0, 100.0})
    for (const double ratio : {0.01, 0.25, 0.5, 0.99, 1.5, 4.0, 100.0}) {
      const StepAtBatch step = step_at_batch(measured_s, ratio, 1);
      EXPECT_GE(step.central_s, measured_s * std::min(1.0, ratio));
      EXPECT_LE(step.central_s, measured_s * std::max(1.0, ratio));
      EXPECT_LE(step.low_s, step.central_s);
      EXPECT_GE(step.high_s, step.central_s);
    }
}

TEST(StepAtBatch, IsNeverShorterThanLaunching) {
  EXPECT_EQ(step_at_batch(0.47, 0.25, 2, 0.26).central_s, 0.26);
  EXPECT_LE(step_at_batch(0.1, 0.25, 2, 0.26).central_s, 0.1);  // the measured step shows that launching is faster
}

// Published steps, in seconds, by images in a pass. StyleGAN3-T on V100 and A100 includes the communication of 2, 4 and
// 8 GPUs (NVlabs/stylegan3 @c233a919a6fa: 37.30, 20.66 and 11.31 s for 1,000 images at 128 px, 13.74, 7.52 and 4.40 s);
// ResNet-50 on P100 in TensorFlow (219 and 195 images/s at batch 64 and 32, tensorflow/docs @62da04c02d67).
TEST(StepAtBatch, PredictsPublishedSteps) {
  const auto error = [](double from_s, double ratio, int networks, double bandwidth, double published_s) {
    return std::log(step_at_batch(from_s, ratio, networks, 0, fixed_per_network(bandwidth)).central_s / published_s);
  };
  EXPECT_NEAR(error(0.03730 * 32, 8.0 / 16, 2, 900e9, 0.02066 * 32), 0, 0.05);
  EXPECT_NEAR(error(0.03730 * 32, 4.0 / 16, 2, 900e9, 0.01131 * 32), 0, 0.08);
  EXPECT_NEAR(error(0.01374 * 32, 8.0 / 16, 2, 1555e9, 0.00752 * 32), 0, 0.05);
  EXPECT_NEAR(error(0.01374 * 32, 4.0 / 16, 2, 1555e9, 0.00440 * 32), 0, 0.08);
  EXPECT_NEAR(error(64 / 219.0, 0.5, 1, 732e9, 32 / 195.0), 0, 0.05);
}

}  // namespace
}  // namespace ganymede::calibration
