#include "studies/self_check.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "calibration/workload_model.hpp"
#include "common/errors.hpp"
#include "common/random.hpp"
#include "support/made_up.hpp"

namespace ganymede {
namespace {

TEST(PredictOwnDevice, IsExactForAConstantTrace) {
  const SelfPrediction prediction = predict_own_device(constant_trace(300), 5000);
  EXPECT_NEAR(prediction.total.si, 5000 * 10e-3, 1e-9 * 50);
  // What is left of the interval is that two runs may drift apart.
  const double drift = 1.96 * std::sqrt(2.0) * kRunDrift;
  EXPECT_NEAR(prediction.interval_s.low, prediction.total.si * (1 - drift), 1e-6);
  EXPECT_NEAR(prediction.interval_s.high, prediction.total.si * (1 + drift), 1e-6);
  EXPECT_EQ(prediction.steps_fitted, 150U);
}

// The first half takes 10 ms a step, the second 20 ms: a prediction that had seen the second would say more.
TEST(PredictOwnDevice, FitsOnTheFirstHalfAlone) {
  std::vector<double> scale(100, 1e-3);
  std::fill(scale.begin() + 50, scale.end(), 2e-3);
  EXPECT_NEAR(predict_own_device(made_up_trace(scale), 1000).total.si, 10, 1e-6);
}

TEST(PredictOwnDevice, NeedsTwoSteps) {
  EXPECT_THROW(predict_own_device(constant_trace(1), 10), ConfigError);
  EXPECT_EQ(predict_own_device(constant_trace(2), 10).steps_fitted, 1U);
}

/// Steps of 10 ms that vary by 10 %, with correlation 0.6 between neighbours.
std::vector<double> correlated(RandomStream& random, std::size_t count) {
  double state = random.normal();
  std::vector<double> scale;
  for (std::size_t i = 0; i < count; ++i) {
    scale.push_back(1e-3 * std::max(0.2, 1 + 0.1 * state));
    state = 0.6 * state + 0.8 * random.normal();
  }
  return scale;
}

// Each of the two runs drifts by itself, as kRunDrift says, and their steps vary: what the interval claims to cover. A
// tenth more or less width would still pass; an interval that left out one run's drift, or were half as wide again,
// would not.
TEST(PredictOwnDevice, HoldsASeparateRunAsOftenAsItSays) {
  constexpr int kTrials = 400;
  int held = 0;
  for (std::uint64_t seed = 0; seed < kTrials; ++seed) {
    RandomStream random(seed, "test/self-check");
    const auto run = [&] {
      const double speed = 1 + kRunDrift * random.normal();
      std::vector<double> scale = correlated(random, 300);
      for (double& unit : scale) unit *= speed;
      return scale;
    };
    const SelfPrediction prediction = predict_own_device(made_up_trace(run()), 300);
    double truth = 0;
    for (const double unit : run()) truth += kMadeUpStep * unit;
    held += prediction.interval_s.low <= truth && truth <= prediction.interval_s.high;
  }
  // A binomial count at the stated 95 %, within 3.09 standard deviations: 99.8 % of all sets of seeds.
  const double expected = 0.95 * kTrials;
  const double deviation = std::sqrt(kTrials * 0.95 * 0.05);
  RecordProperty("held", held);
  EXPECT_GE(held, expected - 3.09 * deviation) << "of " << kTrials;
  EXPECT_LE(held, expected + 3.09 * deviation) << "of " << kTrials;
}

}  // namespace
}  // namespace ganymede
