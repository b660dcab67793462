// Probabilities, means and tails of runs with stated errors, against sums over many outcomes.

#include "plan/chances.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

namespace ganymede::plan {
namespace {

double phi(double z) { return 0.5 * std::erfc(-z / std::sqrt(2.0)); }

/// The middles of `count` equal shares of the standard normal distribution, by bisection on the C library's erfc.
std::vector<double> normal_draws(int count) {
  std::vector<double> draws;
  for (int i = 0; i < count; ++i) {
    double low = -9, high = 9;
    for (int step = 0; step < 60; ++step) {
      const double middle = (low + high) / 2;
      (phi(middle) < (i + 0.5) / count ? low : high) = middle;
    }
    draws.push_back(low);
  }
  return draws;
}

/// A value with the median, whose interval ends lie 1.96 deviations away, at `z` deviations.
double outcome(double median, double low, double high, double z) {
  return median * std::pow(z < 0 ? median / low : high / median, z / 1.96);
}

TEST(Chances, NormalDistributionIsThatOfTheCLibrary) {
  for (double z = -8; z <= 8; z += 0.125) EXPECT_NEAR(normal_below(z), phi(z), 1e-7) << z;
  EXPECT_EQ(normal_below(INFINITY), 1);
  EXPECT_EQ(normal_below(-INFINITY), 0);
}

// Hosts boot for 40 of 100 s whatever a step takes. The other 60 s may be 40 or 90 s, so the run never ends before 40
// s.
TEST(Chances, WhatIsCertainIsNotStretched) {
  RunChances run;
  run.time_s = {100, 80, 130, 1.96, 40};
  EXPECT_EQ(chance_of(run, 40, {}), 0);
  EXPECT_NEAR(chance_of(run, 80, {}), 0.025, 1e-4);
  EXPECT_NEAR(chance_of(run, 70, {}), phi(-1.96 * std::log(2.0) / std::log(1.5)), 1e-7);
  EXPECT_NEAR(chance_of(run, 130, {}), 0.975, 1e-4);
  const std::array<Uncertain, 1> one = {run.time_s}, rest = {Uncertain{60, 40, 90, 1.96}};
  EXPECT_NEAR(expected(one), 40 + expected(rest), 1e-9);
  EXPECT_NEAR(tail_mean(one), 40 + tail_mean(rest), 1e-4);
  EXPECT_NEAR(run.time_s.mean_above(30), expected(one) - 30, 1e-9);
  const Uncertain sure{100, 100, 100, 1.96, 100};
  EXPECT_EQ(sure.mean_above(70), 30);
  EXPECT_EQ(sure.mean_above(120), 0);
}

// Half of the outcomes are those of each run.
TEST(Chances, QuantilesAreOfAllRunsTogether) {
  const std::array<Uncertain, 2> runs = {Uncertain{10, 8, 12, 1.96}, Uncertain{100, 80, 120, 1.96}};
  EXPECT_NEAR(quantile_of(runs, 0.25), 10, 1e-6);
  EXPECT_NEAR(quantile_of(runs, 0.75), 100, 1e-5);
  EXPECT_NEAR(quantile_of(runs, 0.0125), 8, 1e-3);
  EXPECT_NEAR(normal_quantile(0.975), 1.959964, 1e-5);
  EXPECT_NEAR(normal_quantile(0.25), -normal_quantile(0.75), 1e-5);
}

TEST(Chances, ADeadlineIsAQuantile) {
  RunChances run;
  run.time_s = {100, 80, 125, 1.96};
  EXPECT_NEAR(chance_of(run, 125, {}), 0.975, 1e-4);
  EXPECT_NEAR(chance_of(run, 80, {}), 0.025, 1e-4);
  EXPECT_NEAR(chance_of(run, 100, {}), 0.5, 1e-9);
  EXPECT_NEAR(chance_of(run, 110, {}), phi(1.96 * std::log(1.1) / std::log(1.25)), 1e-7);
  EXPECT_EQ(chance_of(run, {}, {}), 1);
  run.time_s = {100, 100, 100, 1.96};  // nothing is uncertain
  EXPECT_EQ(chance_of(run, 100, {}), 1);
  EXPECT_EQ(chance_of(run, 99, {}), 0);
}

// Time and cost rise together, so the nearer goal decides; a doubtful price is independent of both.
TEST(Chances, TimeAndCostRiseTogetherAndAPriceByItself) {
  RunChances run;
  run.time_s = {100, 80, 150, 1.96};
  run.usd = {10, 8, 15, 1.96};
  EXPECT_NEAR(chance_of(run, 120, 11), phi(1.96 * std::log(1.1) / std::log(1.5)), 1e-7);
  run.price = {1, 0.5, 1.6, 1.96};
  const std::vector<double> draws = normal_draws(700);
  int kept = 0;
  for (const double time : draws)
    for (const double price : draws)
      kept += outcome(100, 80, 150, time) <= 120 && outcome(10, 8, 15, time) * outcome(1, 0.5, 1.6, price) <= 11;
  EXPECT_NEAR(chance_of(run, 120, 11), kept / 490'000.0, 2e-3);
}

TEST(Chances, MeanAndWorstTenthAreThoseOfAllOutcomes) {
  const std::array<Uncertain, 2> runs = {Uncertain{10, 4, 12, 1.96}, Uncertain{20, 19, 60, 1.96}};
  std::vector<double> outcomes;
  for (const double z : normal_draws(20'000))
    for (const Uncertain& run : runs) outcomes.push_back(outcome(run.median, run.low, run.high, z));
  std::sort(outcomes.begin(), outcomes.end());
  double sum = 0, worst = 0;
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    sum += outcomes[i];
    if (10 * i >= 9 * outcomes.size()) worst += outcomes[i];
  }
  EXPECT_NEAR(expected(runs), sum / 40'000, 2e-3);
  EXPECT_NEAR(tail_mean(runs), worst / 4'000, 2e-2);
  const std::array<Uncertain, 1> sure = {Uncertain{7, 7, 7, 1.96}};
  EXPECT_NEAR(expected(sure), 7, 1e-6);
  EXPECT_NEAR(tail_mean(sure), 7, 1e-4);
}

// A bound of the search: half of a run's outcomes are above its median.
TEST(Chances, TheMeanIsAtLeastHalfOfTheMedian) {
  const std::array<Uncertain, 1> low = {Uncertain{10, 0, 10, 1.96}};
  EXPECT_GE(expected(low), 5);
  EXPECT_LT(expected(low), 10);
  EXPECT_GE(tail_mean(low), 10 - 1e-4);
}

}  // namespace
}  // namespace ganymede::plan
