#include "calibration/statistics.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "common/random.hpp"

namespace ganymede {
namespace {

TEST(StudentT95, HasItsTabledValues) {
  // Two-sided 95 % points from any table of the distribution; between 31 and infinity the header's series is used.
  EXPECT_EQ(student_t95(1), 12.706);
  EXPECT_EQ(student_t95(2), 4.303);
  EXPECT_EQ(student_t95(9), 2.262);
  EXPECT_EQ(student_t95(30), 2.042);
  EXPECT_NEAR(student_t95(40), 2.021, 0.002);
  EXPECT_NEAR(student_t95(60), 2.000, 0.001);
  EXPECT_NEAR(student_t95(120), 1.980, 0.001);
  EXPECT_NEAR(student_t95(1'000'000), 1.960, 0.0001);
}

TEST(StudentT95, FallsWithTheDegreesOfFreedom) {
  for (std::size_t n = 1; n < 200; ++n) EXPECT_GT(student_t95(n), student_t95(n + 1)) << n;
}

TEST(BlockMean, OfEqualValuesIsCertain) {
  const BlockMean mean = block_mean(std::vector<double>(300, 0.25), 25);
  EXPECT_NEAR(mean.mean, 0.25, 1e-14);
  EXPECT_NEAR(mean.half_width, 0, 1e-15);
  EXPECT_EQ(mean.blocks, 12U);
  EXPECT_EQ(mean.block_length, 25U);
}

// 0, 1, 2, ... 99 in blocks of 10 has block means 4.5, 14.5, ... 94.5: ten values 10 apart, whose variance is
// 100 (n^2 - 1) / 12 x n / (n - 1) = 100 x 110 / 12 for n = 10.
TEST(BlockMean, OfALineSpreadsAsItsBlockMeans) {
  std::vector<double> line(100);
  for (std::size_t i = 0; i < line.size(); ++i) line[i] = static_cast<double>(i);
  const BlockMean mean = block_mean(line, 10);
  EXPECT_NEAR(mean.mean, 49.5, 1e-12);
  EXPECT_EQ(mean.blocks, 10U);
  EXPECT_NEAR(mean.block_deviation, std::sqrt(100.0 * 110 / 12), 1e-12);
  EXPECT_NEAR(mean.half_width, 2.262 * std::sqrt(100.0 * 110 / 12 / 10), 1e-12);
}

TEST(BlockMean, CountsARestForTheMeanOnly) {
  std::vector<double> values(100, 1);
  values.insert(values.end(), 5, 22);  // mean (100 + 110) / 105
  const BlockMean mean = block_mean(values, 25);
  EXPECT_NEAR(mean.mean, 2, 1e-14);
  EXPECT_EQ(mean.blocks, 4U);
}

TEST(BlockMean, ShortensBlocksUntilThereAreFour) {
  EXPECT_EQ(block_mean(std::vector<double>(40, 1), 25).block_length, 10U);
  EXPECT_EQ(block_mean(std::vector<double>(40, 1), 25).blocks, 4U);
  EXPECT_EQ(block_mean(std::vector<double>(3, 1), 25).block_length, 1U);
}

TEST(BlockMean, OfOneValueKnowsNothingOfItsError) {
  const BlockMean mean = block_mean(std::vector<double>{3}, 25);
  EXPECT_EQ(mean.mean, 3);
  EXPECT_EQ(mean.half_width, 3);
  EXPECT_EQ(mean.blocks, 1U);
}

/// Mean 1, standard deviation 0.1, correlation 0.8 between neighbours.
std::vector<double> correlated(std::uint64_t seed, std::size_t count) {
  constexpr double kCorrelation = 0.8;
  RandomStream random(seed, "test/ar1");
  double state = random.normal();
  std::vector<double> series;
  for (std::size_t i = 0; i < count; ++i) {
    series.push_back(1 + 0.1 * state);
    state = kCorrelation * state + std::sqrt(1 - kCorrelation * kCorrelation) * random.normal();
  }
  return series;
}

// Of 300 values with correlation 0.8, the mean's variance is (1 + 0.8) / (1 - 0.8) = 9 times that of independent ones:
// an interval that takes them for independent is 3 times too narrow and holds in P(|z| < 1.96 / 3) = 49 % of cases.
// Blocks of 25 keep a correlation of about r / (25 (1 - r^2)) = 0.09 between neighbours, which narrows the interval by
// some 9 %, so that it holds in about 92 %. The bounds are three standard errors of 400 trials from these (2.5 and 1.4
// points).
TEST(BlockMean, HoldsTheTruthWhereIndependentDrawsDoNot) {
  constexpr int kTrials = 400;
  int by_blocks = 0;
  int as_independent = 0;
  for (std::uint64_t seed = 0; seed < kTrials; ++seed) {
    const auto series = correlated(seed, 300);
    const BlockMean blocks = block_mean(series, kBlockSteps);
    by_blocks += std::abs(blocks.mean - 1) <= blocks.half_width;
    const BlockMean single = block_mean(series, 1);
    as_independent += std::abs(single.mean - 1) <= single.half_width;
  }
  RecordProperty("held_by_blocks", by_blocks);
  RecordProperty("held_as_independent", as_independent);
  EXPECT_GE(by_blocks, 0.88 * kTrials);
  EXPECT_LE(as_independent, 0.57 * kTrials);
}

}  // namespace
}  // namespace ganymede
