#include "sim/ledger/bill.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "common/errors.hpp"
#include "common/units.hpp"
#include "platforms/billing.hpp"
#include "sim/ledger/ledger.hpp"

namespace ganymede::sim {
namespace {

using namespace ganymede::literals;

constexpr MicroUsdPerHour kP3{3'060'000};  // 3.06 USD/h
const BillingRule kPerSecond{.granularity = 1_s, .minimum = 60_s};
const BillingRule kPerHour{.granularity = 3600_s, .minimum = 3600_s};

/// The bill item of `nodes` instances that are rented together for `metered`; empty if nothing is billed.
BillItem instance_hours(const std::string& pool, std::int64_t nodes, MicroUsdPerHour price, Seconds metered,
                        const BillingRule& rule) {
  const std::vector<Rental> rentals(static_cast<std::size_t>(nodes), Rental{0, whole_nanoseconds(metered)});
  const auto items = ganymede::sim::instance_hours(pool, price, rentals, rule);
  return items.empty() ? BillItem{} : items.front();
}

constexpr std::int64_t kSecondNs = 1'000'000'000;
constexpr std::int64_t kHourNs = 3600 * kSecondNs;
constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();

std::vector<std::string> names_of(const std::vector<BillItem>& items) {
  std::vector<std::string> names;
  for (const BillItem& item : items) names.push_back(item.item);
  return names;
}

TEST(WholeNanoseconds, AreTheNearestOfUpTo292Years) {
  EXPECT_EQ(whole_nanoseconds(0_s), 0);
  EXPECT_EQ(whole_nanoseconds(Seconds{1.4e-9}), 1);
  EXPECT_EQ(whole_nanoseconds(Seconds{1.6e-9}), 2);
  EXPECT_EQ(whole_nanoseconds(1.5_s), 1'500'000'000);
  // 9.2e9 s are 291.5 years; 2^63 ns are 9.223e9 s.
  EXPECT_EQ(whole_nanoseconds(Seconds{9.2e9}), 9'200'000'000'000'000'000);
  EXPECT_THROW(whole_nanoseconds(Seconds{9.201e9}), Failure);
  EXPECT_THROW(whole_nanoseconds(Seconds{-1e-9}), Failure);
}

TEST(BilledTime, IsRoundedUpAndAtLeastTheMinimum) {
  EXPECT_EQ(billed_time(61'200'000'000, kPerSecond), 62 * kSecondNs);
  EXPECT_EQ(billed_time(62 * kSecondNs, kPerSecond), 62 * kSecondNs);
  EXPECT_EQ(billed_time(0, kPerSecond), 60 * kSecondNs);
  EXPECT_EQ(billed_time(kSecondNs, kPerHour), 3600 * kSecondNs);
  EXPECT_EQ(billed_time(3601 * kSecondNs, kPerHour), 7200 * kSecondNs);
  // A minimum that is no multiple of the granularity is rounded up as well.
  EXPECT_EQ(billed_time(kSecondNs, {.granularity = 60_s, .minimum = 90_s}), 120 * kSecondNs);
}

// 500 h by the second and by the hour. A microsecond more is rounding noise of summed steps; two microseconds are
// billed.
TEST(BilledTime, DoesNotBillTheNoiseOfSummedSteps) {
  const std::int64_t hours_500 = 500 * 3600 * kSecondNs;
  EXPECT_EQ(billed_time(hours_500 + 1000, kPerSecond), hours_500);
  EXPECT_EQ(billed_time(hours_500 + 1000, kPerHour), hours_500);
  EXPECT_EQ(billed_time(hours_500 + 2000, kPerSecond), hours_500 + kSecondNs);
  EXPECT_EQ(billed_time(hours_500 + 2000, kPerHour), hours_500 + 3600 * kSecondNs);
  // The first unit is billed even after one nanosecond.
  EXPECT_EQ(billed_time(1, {.granularity = 1_s, .minimum = 0_s}), kSecondNs);
  EXPECT_EQ(billed_time(0, {.granularity = 1_s, .minimum = 0_s}), 0);
}

// A unit that is the first is billed whole; after it, a microsecond is noise.
TEST(BilledTime, TakesNoiseAfterTheFirstUnitForNone) {
  constexpr BillingRule kOfNoMinimum{.granularity = 1_s, .minimum = 0_s};
  EXPECT_EQ(billed_time(kSecondNs + 1000, kOfNoMinimum), kSecondNs);
  EXPECT_EQ(billed_time(kSecondNs + 1001, kOfNoMinimum), 2 * kSecondNs);
  EXPECT_EQ(billed_time(1000, kOfNoMinimum), kSecondNs);
}

// 2^63 ns are 9.22e18: three units of 4e18 do not fit, two do.
TEST(BilledTime, ThatDoesNotFitIsAFailure) {
  const BillingRule rule{.granularity = Seconds{4e9}, .minimum = 0_s};
  EXPECT_EQ(billed_time(4'000'000'000'000'000'001 + kNoiseNanoseconds, rule), 8'000'000'000'000'000'000);
  EXPECT_THROW(billed_time(8'000'000'000'000'000'001 + kNoiseNanoseconds, rule), Failure);
}

// A spot node that AWS takes back within its first hour is free; one that its user gives back is not.
TEST(Rental, ThatTheProviderEndsEarlyIsNotCharged) {
  const BillingRule rule{.granularity = 60_s, .minimum = 0_s, .free_if_interrupted = 3600_s};
  constexpr std::int64_t kFrom = 500 * kSecondNs;
  EXPECT_EQ((Rental{kFrom, kFrom + kHourNs - 1, true}.billed_until(rule)), kFrom);
  EXPECT_EQ((Rental{kFrom, kFrom + kHourNs, true}.billed_until(rule)), kFrom + kHourNs);
  EXPECT_EQ((Rental{kFrom, kFrom + 90 * kSecondNs, false}.billed_until(rule)), kFrom + 120 * kSecondNs);
  EXPECT_EQ((Rental{kFrom, kFrom + 90 * kSecondNs, true}.billed_until(kPerSecond)), kFrom + 90 * kSecondNs);
  const std::vector<Rental> both{{kFrom, 2 * kFrom, true}, {2 * kFrom, 2 * kFrom + kHourNs}};
  const auto items = ganymede::sim::instance_hours("spot", kP3, both, rule);
  ASSERT_EQ(items.size(), 1u);
  EXPECT_EQ(items[0].usd.value, kP3.value);
  EXPECT_TRUE(ganymede::sim::instance_hours("spot", kP3, std::span(both).first(1), rule).empty());
}

// 1,000.4 s on one p3.2xlarge: 1,001 s at 3.06 USD/h are 3.06 x 1001 / 3600 = 0.85085 USD.
TEST(InstanceHours, OfOneNodeByHand) {
  const BillItem item = instance_hours("p3.2xlarge", 1, kP3, 1000.4_s, kPerSecond);
  EXPECT_EQ(item.item, "instance-hours");
  EXPECT_EQ(item.pool, "p3.2xlarge");
  EXPECT_EQ(item.unit, "h");
  EXPECT_EQ(item.unit_price, MicroUsd{3'060'000});
  EXPECT_DOUBLE_EQ(item.quantity, 1001.0 / 3600);
  EXPECT_EQ(item.usd, MicroUsd{850'850});
}

// Four nodes for 90 minutes, billed by the hour: 8 instance-hours.
TEST(InstanceHours, OfSeveralNodesBilledByTheHour) {
  const BillItem item = instance_hours("lab", 4, kP3, 5400_s, kPerHour);
  EXPECT_DOUBLE_EQ(item.quantity, 8);
  EXPECT_EQ(item.usd, MicroUsd{8 * 3'060'000});
}

// The amount is rounded once for all nodes together: 3 x 1 micro-dollar/h for 20 minutes is one micro-dollar. Rounded
// for each node, it would be zero.
TEST(InstanceHours, AreRoundedOnceToTheMicroDollar) {
  EXPECT_EQ(instance_hours("cheap", 3, MicroUsdPerHour{1}, 1200_s, kPerSecond).usd, MicroUsd{1});
}

// Half a micro-dollar is rounded up. At 3.6e12 micro-dollars/h a nanosecond costs one.
TEST(InstanceHours, AreRoundedToTheNearestMicroDollar) {
  const BillingRule rule{.granularity = Seconds{1e-9}, .minimum = 0_s};
  const auto usd = [&](std::int64_t price, std::int64_t nanoseconds) {
    const std::vector<Rental> rentals{{7, 7 + nanoseconds}};
    const auto items = ganymede::sim::instance_hours("x", MicroUsdPerHour{price}, rentals, rule);
    return items.empty() ? -1 : items[0].usd.value;
  };
  EXPECT_EQ(usd(3'600'000'000'000, 1), 1);
  EXPECT_EQ(usd(1'800'000'000'000, 1), 1);
  EXPECT_EQ(usd(1'799'999'999'999, 1), 0);
  EXPECT_EQ(usd(1'800'000'000'000, 5), 3);
  EXPECT_EQ(usd(1'800'000'000'000, 0), -1);  // no item
  // The largest amount is 2^63 - 1. 9223372036824031234 x (1 h + 12 ns) exceeds it by 0.456, 9223372036849651712 x
  // (1 h + 2 ns) by 0.576, which is rounded up.
  EXPECT_EQ(usd(kMost, kHourNs), kMost);
  EXPECT_EQ(usd(9'223'372'036'824'031'234, kHourNs + 12), kMost);
  EXPECT_THROW(usd(9'223'372'036'849'651'712, kHourNs + 2), Failure);
}

// Google's N1: each quarter of a month of 730 h costs 20 % of the list price less than the one before. A whole month at
// 1 USD/h: 182.5 x (1 + 0.8 + 0.6 + 0.4) = 511 USD.
const std::vector<double> kSustained{1, 0.8, 0.6, 0.4};

TEST(SustainedUse, OfAWholeMonthByHand) {
  const std::vector<Rental> rentals{{0, 730 * kHourNs}};
  const auto items = ganymede::sim::instance_hours("n1", MicroUsdPerHour{1'000'000}, rentals,
                                                   {.minimum = 0_s, .sustained_use = kSustained});
  const std::vector<std::string> names{"instance-hours", "instance-hours at 80 % (sustained use)",
                                       "instance-hours at 60 % (sustained use)",
                                       "instance-hours at 40 % (sustained use)"};
  ASSERT_EQ(names_of(items), names);
  for (std::size_t i = 0; i < items.size(); ++i) {
    EXPECT_DOUBLE_EQ(items[i].quantity, 182.5);
    EXPECT_EQ(items[i].list_price, MicroUsd{1'000'000});
    EXPECT_EQ(items[i].unit_price.value, std::llround(1e6 * kSustained[i]));
  }
  EXPECT_EQ(Bill{items}.total(), MicroUsd{511'000'000});
}

// One instance from hour 0 to 400, another from 300 to 800. In the first month at least one runs for 730 h, 182.5 h in
// each quarter, and two for 100 h, in the first quarter of the second; the next month has 70 h in its first quarter.
TEST(SustainedUse, JoinsRentalsThatFollowEachOtherAndBeginsAnewWithTheMonth) {
  const std::vector<Rental> rentals{{0, 400 * kHourNs}, {300 * kHourNs, 800 * kHourNs}};
  const auto items = ganymede::sim::instance_hours("n1", MicroUsdPerHour{1'000'000}, rentals,
                                                   {.minimum = 0_s, .sustained_use = kSustained});
  ASSERT_EQ(items.size(), 4u);
  EXPECT_DOUBLE_EQ(items[0].quantity, 182.5 + 100 + 70);
  EXPECT_EQ(items[0].usd, MicroUsd{352'500'000});
  EXPECT_DOUBLE_EQ(items[3].quantity, 182.5);
  EXPECT_EQ(items[3].usd, MicroUsd{73'000'000});
}

// A nanosecond is time too: of two halves of a month the second has one. At 3.6e15 micro-dollars/h it costs a thousand,
// of which the second half takes 80 %.
TEST(SustainedUse, CountsTheLastNanosecond) {
  const BillingRule rule{.granularity = Seconds{1e-9}, .minimum = 0_s, .sustained_use = {1, 0.8}};
  const std::vector<Rental> rentals{{0, 365 * kHourNs + 1}};
  const auto items = ganymede::sim::instance_hours("n1", MicroUsdPerHour{3'600'000'000'000'000}, rentals, rule);
  ASSERT_EQ(items.size(), 2u);
  EXPECT_EQ(items[1].usd, MicroUsd{800});
}

// Hour by hour: how many rentals run? The k-th of them is the month's k-th instance.
RC_GTEST_PROP(SustainedUseProperty, IsThatOfTheHoursCountedOneByOne, ()) {
  constexpr int kMonth_h = 730, kMonths = 3;
  const int parts = *rc::gen::element(1, 2, 5, 10);  // of whole hours
  BillingRule rule{.granularity = 3600_s, .minimum = 0_s, .free_if_interrupted = Seconds{3 * 3600.0}};
  for (int i = 0; i < parts; ++i) rule.sustained_use.push_back(1 - 0.07 * i);
  std::vector<Rental> rentals;
  std::vector<int> running(kMonths * kMonth_h, 0);
  const int count = *rc::gen::inRange(0, 8);
  for (int i = 0; i < count; ++i) {
    const int from = *rc::gen::inRange(0, kMonths * kMonth_h), to = *rc::gen::inRange(from, kMonths * kMonth_h + 1);
    const bool interrupted = *rc::gen::arbitrary<bool>();
    rentals.push_back({from * kHourNs, to * kHourNs, interrupted});
    if (interrupted && to - from < 3) continue;
    for (int hour = from; hour < to; ++hour) ++running[static_cast<std::size_t>(hour)];
  }
  std::vector<int> hours(static_cast<std::size_t>(parts), 0);
  for (int month = 0; month < kMonths; ++month)
    for (int level = 1; level <= count; ++level) {
      const auto first = running.begin() + month * kMonth_h;
      const auto used = std::count_if(first, first + kMonth_h, [&](int now) { return now >= level; });
      for (int hour = 0; hour < used; ++hour) ++hours[static_cast<std::size_t>(hour * parts / kMonth_h)];
    }
  const auto items = ganymede::sim::instance_hours("pool", kP3, rentals, rule);
  std::size_t next = 0;
  for (std::size_t part = 0; part < hours.size(); ++part) {
    if (hours[part] == 0) continue;
    RC_ASSERT(next < items.size());
    RC_ASSERT(items[next].quantity == hours[part]);
    RC_ASSERT(items[next].unit_price.value == std::llround(3'060'000 * rule.sustained_use[part]));
    RC_ASSERT(items[next].usd.value == hours[part] * items[next].unit_price.value);
    ++next;
  }
  RC_ASSERT(next == items.size());
}

TEST(Charge, IsQuantityTimesPriceToTheNearestMicroDollar) {
  const BillItem item = charge("egress", "internet", 2.5, "GB", {90'001});  // 225,002.5 micro-dollars
  EXPECT_EQ(item.item, "egress");
  EXPECT_EQ(item.pool, "internet");
  EXPECT_EQ(item.quantity, 2.5);
  EXPECT_EQ(item.unit, "GB");
  EXPECT_EQ(item.unit_price, MicroUsd{90'001});
  EXPECT_EQ(item.usd, MicroUsd{225'003});
  EXPECT_EQ(charge("x", "", 8.9e18, "", {1}).usd, MicroUsd{8'900'000'000'000'000'000});
  for (const double quantity : {9e18, 1.2e19, -9e18, std::numeric_limits<double>::quiet_NaN()})
    EXPECT_THROW(charge("x", "", quantity, "", {1}), Failure) << quantity;
}

// AWS's tiers to the internet: 0.09 USD/GB up to 10 TB, 0.085 for the next 40, 0.07 beyond.
TEST(Tiered, ChargesEachTierForWhatLiesInIt) {
  const std::vector<platforms::PriceTier> tiers{{10'240, {90'000}}, {51'200, {85'000}}, {std::nullopt, {70'000}}};
  const auto amounts = [&](double volume, platforms::VolumeUnit unit) {
    std::vector<std::pair<double, std::int64_t>> found;
    std::vector<double> quantities;
    fill_tiers(0, volume, tiers, quantities);
    for (const BillItem& item : tiered("egress", "internet", quantities, unit, tiers)) {
      EXPECT_EQ(item.unit, platforms::unit_name(unit));
      found.emplace_back(item.quantity, item.usd.value);
    }
    return found;
  };
  using Amounts = std::vector<std::pair<double, std::int64_t>>;
  for (const auto unit : {platforms::VolumeUnit::gb, platforms::VolumeUnit::gib}) {
    EXPECT_EQ(amounts(0, unit), Amounts{});
    EXPECT_EQ(amounts(0.5, unit), (Amounts{{0.5, 45'000}}));
    EXPECT_EQ(amounts(10'240, unit), (Amounts{{10'240, 921'600'000}}));
    EXPECT_EQ(amounts(20'000, unit), (Amounts{{10'240, 921'600'000}, {9'760, 829'600'000}}));
    EXPECT_EQ(amounts(60'000, unit), (Amounts{{10'240, 921'600'000}, {40'960, 3'481'600'000}, {8'800, 616'000'000}}));
  }
  // The traffic after 10,000 GB of the same month begins in the first tier.
  std::vector<double> quantities{1, 2, 3};
  fill_tiers(10'000, 50'000, tiers, quantities);
  EXPECT_EQ(quantities, (std::vector<double>{1 + 240, 2 + 40'960, 3 + 8'800}));
}

TEST(InstanceHours, ThatDoNotFitAreAFailure) {
  constexpr MicroUsdPerHour kAbsurd{std::numeric_limits<std::int64_t>::max() / 2};
  EXPECT_THROW(instance_hours("x", 3, kAbsurd, 3600_s, kPerSecond), Failure);
  EXPECT_THROW(instance_hours("x", 1, kAbsurd, Seconds{360'000}, kPerSecond), Failure);
  EXPECT_THROW(instance_hours("x", 1, kP3, Seconds{std::numeric_limits<double>::quiet_NaN()}, kPerSecond), Failure);
}

TEST(Bill, TotalThatDoesNotFitIsAFailure) {
  BillItem huge;
  huge.usd = {std::numeric_limits<std::int64_t>::max()};
  EXPECT_EQ(Bill{{huge}}.total(), huge.usd);
  BillItem cent;
  cent.usd = {10'000};
  EXPECT_THROW((Bill{{huge, cent}}.total()), Failure);
}

TEST(Bill, OfNothingIsNothing) { EXPECT_EQ(Bill{}.total(), MicroUsd{0}); }

RC_GTEST_PROP(BillProperty, ItemsSumToTheTotalAndNobodyPaysForLessThanWasMetered, ()) {
  Bill bill;
  std::int64_t sum = 0;
  const auto pools = *rc::gen::inRange(0, 20);
  for (int pool = 0; pool < pools; ++pool) {
    const auto nodes = *rc::gen::inRange<std::int64_t>(1, 65'537);
    const MicroUsdPerHour price{*rc::gen::inRange<std::int64_t>(0, 100'000'000)};
    const Seconds metered{*rc::gen::inRange(0, 1'000'000'000) / 1e3};
    const BillingRule rule{.granularity = Seconds{static_cast<double>(*rc::gen::inRange(1, 3601))},
                           .minimum = Seconds{static_cast<double>(*rc::gen::inRange(0, 3601))}};
    const BillItem item = instance_hours("pool", nodes, price, metered, rule);
    const std::int64_t of_meter = whole_nanoseconds(metered);
    const std::int64_t least = std::max(of_meter, whole_nanoseconds(rule.minimum));
    const std::int64_t billed_ns = billed_time(of_meter, rule);
    RC_ASSERT(billed_ns + kNoiseNanoseconds >= least);
    RC_ASSERT(billed_ns < least + whole_nanoseconds(rule.granularity));
    const Seconds billed{static_cast<double>(billed_ns) / kNanosecondsPerSecond};
    RC_ASSERT(item.usd == cost(nodes * price, billed));
    sum += item.usd.value;
    bill.items.push_back(item);
  }
  RC_ASSERT(bill.total() == MicroUsd{sum});
}

}  // namespace
}  // namespace ganymede::sim
