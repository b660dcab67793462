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

// A training of 8766 / 1024 h: a year holds 1,024 of them, and all numbers below are exact.
OwnedCost of_1024_trainings(double capital, double yearly, double training) {
  return {capital, 3, yearly, training, 8'766 / 1024.0};
}

TEST(BreakEven, IsReachedAtTheYearsLastTrainingOrNever) {
  // 10 USD saved in each of 1,024 trainings are 10,240 USD.
  EXPECT_EQ(break_even(of_1024_trainings(0, 10'240, 1), {11, 0, 8}).trainings_a_year, 1024);
  EXPECT_FALSE(break_even(of_1024_trainings(0, 10'241, 1), {11, 0, 8}).trainings_a_year);
  // With nothing due in a year: as cheap as renting is cheap enough, dearer never is.
  EXPECT_EQ(break_even(of_1024_trainings(0, 0, 1), {1, 0, 8}).trainings_a_year, 0);
  EXPECT_FALSE(break_even(of_1024_trainings(0, 0, 1.5), {1, 0, 8}).trainings_a_year);
  EXPECT_FALSE(break_even(of_1024_trainings(3, 0, 1), {1, 0, 8}).trainings_a_year);
}

TEST(BreakEven, EarnsTheCapitalBackWithinTheMachinesLife) {
  // 13 - 1 USD in each of 1,024 trainings are 1,024 USD a month: 36 months for 36,864 USD.
  EXPECT_EQ(break_even(of_1024_trainings(36'864, 0, 1), {13, 0, 8}).months, 36);
  EXPECT_FALSE(break_even(of_1024_trainings(36'865, 0, 1), {13, 0, 8}).months);
  // With 6,144 USD a year for its room, half of that is left.
  EXPECT_EQ(break_even(of_1024_trainings(18'432, 6'144, 1), {13, 0, 8}).months, 36);
  // Half a dollar a month is little, and earns 9 USD back in 18 months.
  EXPECT_EQ(break_even(of_1024_trainings(9, 0, 1), {1 + 6 / 1024.0, 0, 8}).months, 18);
}

TEST(BreakEven, AgainstAReservationAtTheEndsOfItsSets) {
  // What the machine costs in a year is what the set does, and a training costs more on the machine.
  EXPECT_EQ(break_even(a_machine(), {0, 12'000, 10}).trainings_a_year, 0);
  // Each training saves a dollar: the 4,000 that are missing need more than the year's 876.6.
  EXPECT_FALSE(break_even(a_machine(), {2, 8'000, 10}).trainings_a_year);
  // With sets of 438.3 trainings: the second set of 8,000 USD more is enough by itself.
  EXPECT_DOUBLE_EQ(*break_even(a_machine(), {2, 8'000, 20}).trainings_a_year, 438.3);
  // With sets of 219.15 trainings at 4,000 USD: 12,000 need a third set. A training that saves 10 USD earns 2,191.5 in
  // the first, and in the second what is missing to 4,000 after 400.
  EXPECT_DOUBLE_EQ(*break_even(a_machine(), {1, 4'000, 40}).trainings_a_year, 2 * 219.15);
  EXPECT_DOUBLE_EQ(*break_even(a_machine(), {11, 4'000, 40}).trainings_a_year, 400);
  EXPECT_DOUBLE_EQ(usd_a_year(RentedCost{3, 4'000, 40}, 400), 2 * 4'000 + 3 * 400);
  EXPECT_DOUBLE_EQ(usd_a_year(RentedCost{3, 4'000, 40}, 0), 4'000);
  EXPECT_DOUBLE_EQ(usd_a_year(RentedCost{3, 0, 40}, 400), 3 * 400);
}

TEST(BreakEven, AMachineThatCostsNothingIsAlwaysCheaper) {
  const OwnedCost gift{0, 3, 0, 1, 10};
  EXPECT_DOUBLE_EQ(*break_even(gift, {2, 0, 8}).trainings_a_year, 0);
  EXPECT_DOUBLE_EQ(*break_even(gift, {2, 0, 8}).months, 0);
}

}  // namespace
}  // namespace ganymede::plan
