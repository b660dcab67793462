// The losses of a training: kept in order, thinned, and read again.

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "serve/command_run.hpp"

namespace ganymede::serve {
namespace {

Progress at(std::uint64_t step, double discriminator, double generator) {
  return {step, 10'000, "steps", {{"discriminator", discriminator}, {"generator", generator}}};
}

TEST(LossesOfATraining, AreThinnedAndKeepTheirOrder) {
  Losses losses;
  for (std::uint64_t step = 1; step <= 10'000; ++step) losses.add(at(step, 1.0 / static_cast<double>(step), 2));
  const auto& points = losses.points();
  EXPECT_LT(points.size(), Losses::kMost);
  EXPECT_GE(points.size(), Losses::kMost / 4);
  EXPECT_EQ(points.front().step, 1);
  for (std::size_t i = 0; i < points.size(); ++i) {
    EXPECT_GT(points[i].step, i == 0 ? 0 : points[i - 1].step);
    EXPECT_EQ(points[i].discriminator, 1.0 / static_cast<double>(points[i].step));
  }
}

TEST(LossesOfATraining, WhatIsNoneIsLeftOut) {
  Losses losses;
  losses.add({1, 2, "runs", {}});
  losses.add(at(2, NAN, 1));
  losses.add({3, 4, "steps", {{"generator", 1}}});
  EXPECT_TRUE(losses.points().empty());
  losses.add(at(5, 1, 1));
  losses.add(at(5, 2, 2));  // a training that was resumed tells its first step again
  losses.add(at(4, 2, 2));
  EXPECT_EQ(losses.points().size(), 1U);
}

TEST(LossesOfATraining, AreReadAgain) {
  const auto file = std::filesystem::temp_directory_path() / ("ganymede-losses-" + std::to_string(::getpid()));
  Losses losses;
  losses.add(at(1, 0.5, 0.25));
  losses.add(at(7, 0.125, 3));
  std::ofstream(file) << losses.csv() << "8,damaged\n9,1,1\n";
  const Losses again = Losses::read(file);
  ASSERT_EQ(again.points().size(), 2U);
  EXPECT_EQ(again.points()[1].step, 7);
  EXPECT_EQ(again.points()[1].generator, 3);
  std::filesystem::remove(file);
  EXPECT_TRUE(Losses::read(file).points().empty());
}

}  // namespace
}  // namespace ganymede::serve
