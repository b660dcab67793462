#include <gtest/gtest.h>

#include <set>

#include "sim/steps/step_sampling.hpp"

namespace ganymede::sim {
namespace {

std::vector<std::vector<std::size_t>> draw(StepSampler sampler, std::size_t steps) {
  std::vector<std::vector<std::size_t>> rows;
  for (std::size_t i = 0; i < steps; ++i) {
    const auto next = sampler.next();
    rows.emplace_back(next.begin(), next.end());
  }
  return rows;
}

TEST(StepSampler, IsTheSameForTheSameSeed) {
  EXPECT_EQ(draw({300, 4, 25, 7}, 200), draw({300, 4, 25, 7}, 200));
  EXPECT_NE(draw({300, 4, 25, 7}, 200), draw({300, 4, 25, 8}, 200));
}

TEST(StepSampler, DrawsOneBlockForAllWorkersAndAPlaceInItForEach) {
  const auto rows = draw({300, 4, 25, 1}, 25 * 40);
  std::set<std::size_t> offsets;
  for (std::size_t block = 0; block < 40; ++block) {
    std::set<std::size_t> of_block;
    for (std::size_t step = 0; step < 25; ++step)
      of_block.insert(rows[block * 25 + step].begin(), rows[block * 25 + step].end());
    // Each worker passes through all 25 steps, and these are the same for all: consecutive ones.
    EXPECT_EQ(of_block.size(), 25U);
    EXPECT_EQ(*of_block.rbegin() - *of_block.begin(), 24U);
    EXPECT_LT(*of_block.rbegin(), 300U);
    offsets.insert(rows[block * 25][1] - *of_block.begin());
  }
  EXPECT_GT(offsets.size(), 10U);  // different offsets of 25, in 40 draws
}

TEST(StepSampler, RowsFollowEachOtherAsRecorded) {
  const auto rows = draw({300, 3, 25, 1}, 25);
  for (std::size_t worker = 0; worker < 3; ++worker) {
    int breaks = 0;  // where the block is left at its end and entered again at its start
    for (std::size_t step = 1; step < 25; ++step) breaks += rows[step][worker] != rows[step - 1][worker] + 1;
    EXPECT_LE(breaks, 1);
  }
}

TEST(StepSampler, ReachesEveryStepOfTheTrace) {
  std::set<std::size_t> seen;
  for (const auto& rows : draw({60, 2, 25, 1}, 25 * 200)) seen.insert(rows.begin(), rows.end());
  EXPECT_EQ(seen.size(), 60U);
}

TEST(StepSampler, TakesAShortTraceAsOneBlock) {
  const StepSampler sampler(10, 1, 25, 1);
  EXPECT_EQ(sampler.block_length(), 10U);
  for (const auto& rows : draw(sampler, 50)) EXPECT_LT(rows[0], 10U);
}

}  // namespace
}  // namespace ganymede::sim
