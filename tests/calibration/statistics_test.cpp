#include "calibration/statistics.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "common/random.hpp"

namespace ganymede::calibration {
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
  EXPECT_NEAR(mean.half_width, 0, 1e-14);
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
  // Neighbours are alike, so that the mean is less certain than that of ten independent values.
  EXPECT_GT(mean.half_width, 2 * 2.262 * std::sqrt(100.0 * 110 / 12 / 10));
}

// The values 0, 1, 0, 1, ... with one step up after half of them: neighbours are not alike, so only the deviation of
// the blocks counts.
TEST(BlockMean, WithoutCorrelationIsStudentsInterval) {
  std::vector<double> values(80);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i % 2) + (i < 40 ? 0.0 : 0.1);
  const BlockMean mean = block_mean(values, 10);
  EXPECT_EQ(mean.blocks, 8U);
  EXPECT_NEAR(mean.half_width, 2.365 * mean.block_deviation / std::sqrt(8.0), 1e-12);
}

/// Values with mean 1, standard deviation 0.1 and that correlation between neighbours.
std::vector<double> correlated(std::uint64_t seed, std::size_t count, double correlation) {
  RandomStream random(seed, "test/ar1");
  double state = random.normal();
  std::vector<double> series;
  for (std::size_t i = 0; i < count; ++i) {
    series.push_back(1 + 0.1 * state);
    state = correlation * state + std::sqrt(1 - correlation * correlation) * random.normal();
  }
  return series;
}

/// The share of intervals that hold the true mean.
double coverage(double correlation, std::size_t steps) {
  constexpr std::uint64_t kSeries = 2000;
  int held = 0;
  for (std::uint64_t seed = 0; seed < kSeries; ++seed) {
    const BlockMean mean = block_mean(correlated(seed, steps, correlation), kBlockSteps);
    held += std::abs(mean.mean - 1) <= mean.half_width ? 1 : 0;
  }
  return static_cast<double>(held) / static_cast<double>(kSeries);
}

// Five standard deviations of a share of 2000 are 2.4 %.
TEST(BlockMean, HoldsTheMeanOfCorrelatedStepsAsOftenAsItSays) {
  for (const std::size_t steps : {300U, 1000U})
    for (const double correlation : {0.0, 0.5, 0.8, 0.9}) {
      EXPECT_GT(coverage(correlation, steps), 0.93) << correlation << ", " << steps;
      EXPECT_LT(coverage(correlation, steps), 0.975) << correlation << ", " << steps;
    }
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

// The mean of 300 values with correlation 0.8 has (1 + 0.8) / (1 - 0.8) = 9 times the variance of independent ones:
// an interval that takes them for independent is 3 times too narrow and holds in P(|z| < 1.96 / 3) = 49 % of cases.
// The bounds are three standard errors of 400 trials (2.5 and 1.1 points) from these 49 % and from 95 %.
TEST(BlockMean, HoldsTheTruthWhereIndependentDrawsDoNot) {
  constexpr int kTrials = 400;
  int by_blocks = 0;
  int as_independent = 0;
  for (std::uint64_t seed = 0; seed < kTrials; ++seed) {
    const auto series = correlated(seed, 300, 0.8);
    const BlockMean blocks = block_mean(series, kBlockSteps);
    by_blocks += std::abs(blocks.mean - 1) <= blocks.half_width;
    const double deviation = block_mean(series, 1).block_deviation;
    as_independent += std::abs(blocks.mean - 1) <= student_t95(299) * deviation / std::sqrt(300.0);
  }
  RecordProperty("held_by_blocks", by_blocks);
  RecordProperty("held_as_independent", as_independent);
  EXPECT_GE(by_blocks, 0.917 * kTrials);
  EXPECT_LE(as_independent, 0.57 * kTrials);
}

// The values 0, 1, …, 20 have the 5th percentile 1, the 95th 19 and the median 10; low ends are 1 lower, high ends 3
// higher.
TEST(Statistics, OverSeedsTheIntervalGoesFromLowEndsToHighEnds) {
  std::vector<double> values, lows, highs;
  for (const int i : {20, 3, 7, 0, 11, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, 15, 16, 17, 18, 19}) {
    values.push_back(i);
    lows.push_back(i - 1);
    highs.push_back(i + 3);
  }
  const SeedQuantiles quantiles = seed_quantiles(values, lows, highs);
  EXPECT_DOUBLE_EQ(quantiles.median, 10);
  EXPECT_DOUBLE_EQ(quantiles.p5, 1);
  EXPECT_DOUBLE_EQ(quantiles.p95, 19);
  EXPECT_DOUBLE_EQ(quantiles.low, 0);
  EXPECT_DOUBLE_EQ(quantiles.high, 22);
  // Values without a price are left out; if all are, the result is not a number.
  values.push_back(std::numeric_limits<double>::infinity());
  EXPECT_DOUBLE_EQ(seed_quantiles(values, lows, highs).median, 10);
  const double none[] = {std::numeric_limits<double>::infinity()};
  EXPECT_TRUE(std::isnan(seed_quantiles(none, none, none).median));
}

}  // namespace
}  // namespace ganymede::calibration
