#include "calibration/worker_variation.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "common/random.hpp"
#include "common/units.hpp"

namespace ganymede::calibration {
namespace {

// The exact expectations of the largest of n normal variates (Harter, Biometrika 48, 1961).
TEST(ExpectedSlowest, IsThatOfNormalVariates) {
  EXPECT_EQ(expected_slowest(1), 0);
  EXPECT_NEAR(expected_slowest(2), 0.5642, 0.05 * 0.5642);
  EXPECT_NEAR(expected_slowest(4), 1.0294, 0.02 * 1.0294);
  EXPECT_NEAR(expected_slowest(8), 1.4236, 0.01 * 1.4236);
  EXPECT_NEAR(expected_slowest(100), 2.5076, 0.01 * 2.5076);
  EXPECT_NEAR(expected_slowest(1000), 3.2414, 0.01 * 3.2414);
}

TEST(ExpectedSlowest, OfThoseThatAreWaitedFor) {
  EXPECT_NEAR(expected_slowest(8, 2), 0.8522, 0.01 * 0.8522);
  EXPECT_NEAR(expected_slowest(5, 3), 0, 1e-9);  // the median
  EXPECT_NEAR(expected_slowest(8, 8), -expected_slowest(8, 1), 1e-12);
}

// Compares with random draws, for a count beyond the tables.
TEST(ExpectedSlowest, AgreesWithDraws) {
  RandomStream random(7, "test/slowest");
  double sum = 0;
  constexpr int kTimes = 400, kWorkers = 500;
  for (int i = 0; i < kTimes; ++i) {
    double slowest = -1e9;
    for (int worker = 0; worker < kWorkers; ++worker) slowest = std::max(slowest, random.normal());
    sum += slowest;
  }
  EXPECT_NEAR(sum / kTimes, expected_slowest(kWorkers), 0.06);
}

TEST(DefaultWorkerVariation, DependsOnWhoRunsTheStep) {
  EXPECT_EQ(default_worker_variation({"PyTorch", "2.1", "cuda"}).central, kEagerVariation.central);
  EXPECT_EQ(default_worker_variation({"ganymede", "0.1", "roofline"}).central, kEagerVariation.central);
  EXPECT_EQ(default_worker_variation({"ganymede", "0.1", "cuda"}).central, kGraphVariation.central);
  EXPECT_GT(kEagerVariation.seconds_per_byte, kGraphVariation.seconds_per_byte);
}

using namespace literals;

platforms::Gpu gpu_of(BytesPerSecond bandwidth, platforms::Gpu::Kind kind = platforms::Gpu::Kind::gpu) {
  platforms::Gpu gpu;
  gpu.kind = kind;
  gpu.memory_bandwidth = bandwidth;
  return gpu;
}

// Gradients move through memory: an H100's is 3,350 / 900 times as fast as a V100's.
TEST(WorkOnGradients, IsInInverseProportionToTheMemoryBandwidthOfAGpu) {
  EXPECT_EQ(work_on_gradients(kEagerVariation, gpu_of(900_GB_per_s)), 1);
  EXPECT_NEAR(work_on_gradients(kEagerVariation, gpu_of(3350_GB_per_s)), 900.0 / 3350, 1e-12);
  EXPECT_EQ(work_on_gradients(kEagerVariation, gpu_of(21_GB_per_s, platforms::Gpu::Kind::cpu)), 1);
  EXPECT_EQ(work_on_gradients(kGraphVariation, gpu_of(3350_GB_per_s)), 1);
}

// A step of 100 ms that reduces 100 MB: 2 % times the expected slower of two, and 0.1 ns a byte are another 10 %.
TEST(SynchronizationSlowdown, HasAPartOfTheStepAndAPartOfTheGradients) {
  const WorkerVariation variation{0, 0.02, 0.1e-9};
  EXPECT_EQ(synchronization_slowdown(variation, 1, 0, 1, 100e6, 0.1), 1);
  EXPECT_NEAR(synchronization_slowdown(variation, 2, 0, 1, 100e6, 0.1), 1 + 0.02 * expected_slowest(2) + 0.1, 1e-12);
  EXPECT_NEAR(synchronization_slowdown(variation, 2, 1, 1, 100e6, 0.1), 1.1, 1e-12);  // nobody waits for the slower one
  // Over 4 steps between two reductions, a quarter of the work and half of the deviation remain.
  EXPECT_NEAR(synchronization_slowdown(variation, 2, 0, 4, 100e6, 0.1), 1 + 0.01 * expected_slowest(2) + 0.025, 1e-12);
}

}  // namespace
}  // namespace ganymede::calibration
