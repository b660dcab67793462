#include "plan/checks.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace ganymede::plan {
namespace {

/// Seconds by which evaluations every `interval` images lengthen a training: their pauses, and half an interval.
double lost_s(double images, double train_s, double pause_s, double interval) {
  return images / interval * pause_s + interval / 2 * train_s / images;
}

TEST(Checks, NoOtherIntervalLosesLess) {
  for (const double pause_s : {20.0, 300.0}) {
    const auto best = static_cast<double>(best_check_interval(2e7, 3600, pause_s, 64));
    const double least = lost_s(2e7, 3600, pause_s, best);
    for (const double factor : {0.25, 0.5, 0.8, 1.25, 2.0, 4.0})
      EXPECT_LT(least, lost_s(2e7, 3600, pause_s, factor * best)) << factor;
    // At the best interval the pauses take as long as what is trained beyond the FID.
    EXPECT_NEAR(least, std::sqrt(2 * pause_s * 3600), 0.01 * least);
  }
}

TEST(Checks, AnIntervalIsOfWholeStepsAndNotLongerThanTheTraining) {
  EXPECT_EQ(best_check_interval(1e6, 100, 10, 96) % 96, 0);
  EXPECT_EQ(best_check_interval(64'000, 10, 1e6, 64), 64'000);
  EXPECT_EQ(best_check_interval(1e6, 1e6, 1e-9, 64), 64);
}

}  // namespace
}  // namespace ganymede::plan
