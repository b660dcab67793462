// Break-even of owning and renting, worked by hand.

#include "plan/break_even.hpp"

#include <gtest/gtest.h>

namespace ganymede::plan {
namespace {

/// 30,000 USD over 3 years and 2,000 USD a year for space and people: 12,000 USD a year. A training takes 10 h and 1
/// USD of electricity, so that a year holds 876.6 trainings.
OwnedCost a_machine() { return {30'000, 3, 2'000, 1, 10}; }

TEST(BreakEven, IsTheFixedCostOverWhatATrainingSaves) {
  // A rented training costs 41 USD and saves 40: 12,000 / 40 = 300 trainings of 10 h.
  const BreakEven at = break_even(a_machine(), {41, 0, 8});
  EXPECT_DOUBLE_EQ(*at.trainings_a_year, 300);
  EXPECT_DOUBLE_EQ(*at.hours_a_year(a_machine()), 3'000);
  EXPECT_DOUBLE_EQ(*at.utilization(a_machine()), 3'000 / 8'766.0);
  // Without a pause: 876.6 x 40 - 2,000 = 33,064 USD a year are saved; 30,000 are earned back in 10.9 months.
  EXPECT_DOUBLE_EQ(*at.months, 30'000 / (33'064 / 12.0));
  EXPECT_DOUBLE_EQ(usd_a_year(a_machine(), 300), 12'300);
  EXPECT_DOUBLE_EQ(usd_a_year(RentedCost{41, 0, 8}, 300), 12'300);
}

TEST(BreakEven, IsNeverReachedByAMachineThatTrainsAllYearOrSavesNothing) {
  // 12,000 / 13 = 923 trainings are more than the 876.6 of a year; the capital is not earned back in three years:
  // 876.6 x 13 - 2,000 = 9,395.8 USD a year.
  const BreakEven dear = break_even(a_machine(), {14, 0, 8});
  EXPECT_FALSE(dear.trainings_a_year);
  EXPECT_FALSE(dear.hours_a_year(a_machine()));
  EXPECT_FALSE(dear.months);
  EXPECT_FALSE(break_even(a_machine(), {1, 0, 8}).trainings_a_year);
  EXPECT_FALSE(break_even(a_machine(), {0.5, 0, 8}).months);
}

TEST(BreakEven, AgainstAReservationCountsItsWholeYear) {
  // 20,000 USD a year are due for the reservation whatever it does: owning for 12,000 is cheaper from the first hour.
  EXPECT_DOUBLE_EQ(*break_even(a_machine(), {0, 20'000, 10}).trainings_a_year, 0);
  // One set for 8,000 USD does as much as the machine in a year: owning never pays.
  EXPECT_FALSE(break_even(a_machine(), {0, 8'000, 10}).trainings_a_year);
  // A reservation that takes 20 h for a training does 438.3 in a year; more need a second one, for 16,000 USD in all.
  EXPECT_DOUBLE_EQ(*break_even(a_machine(), {0, 8'000, 20}).trainings_a_year, 8'766 / 20.0);
  // Besides, its storage costs 11 USD a training, 10 more than owning: 4,000 / 10 trainings make up for the 4,000.
  EXPECT_DOUBLE_EQ(*break_even(a_machine(), {11, 8'000, 10}).trainings_a_year, 400);
  EXPECT_DOUBLE_EQ(usd_a_year(RentedCost{0, 8'000, 20}, 438.3), 8'000);
  EXPECT_DOUBLE_EQ(usd_a_year(RentedCost{0, 8'000, 20}, 439), 16'000);
  // Two reservations keep up with the machine: 16,000 - 876.6 - 2,000 USD are saved in a year.
  EXPECT_DOUBLE_EQ(*break_even(a_machine(), {0, 8'000, 20}).months, 30'000 / ((16'000 - 876.6 - 2'000) / 12));
}

TEST(BreakEven, AMachineThatCostsNothingIsAlwaysCheaper) {
  const OwnedCost gift{0, 3, 0, 1, 10};
  EXPECT_DOUBLE_EQ(*break_even(gift, {2, 0, 8}).trainings_a_year, 0);
  EXPECT_DOUBLE_EQ(*break_even(gift, {2, 0, 8}).months, 0);
}

}  // namespace
}  // namespace ganymede::plan
