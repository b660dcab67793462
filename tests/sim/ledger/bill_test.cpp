#include "sim/ledger/bill.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "common/errors.hpp"
#include "sim/ledger/nanoseconds.hpp"

namespace ganymede {
namespace {

using namespace ganymede::literals;

constexpr MicroUsdPerHour kP3{3'060'000};  // 3.06 USD/h
const BillingRule kPerSecond{.granularity = 1_s, .minimum = 60_s};
const BillingRule kPerHour{.granularity = 3600_s, .minimum = 3600_s};

/// Of so many instances, all rented at once and for as long; nothing where nothing is billed.
BillItem instance_hours(const std::string& pool, std::int64_t nodes, MicroUsdPerHour price, Seconds metered,
                        const BillingRule& rule) {
  const std::vector<Rental> rentals(static_cast<std::size_t>(nodes), Rental{0, whole_nanoseconds(metered)});
  const auto items = ganymede::instance_hours(pool, price, rentals, rule);
  return items.empty() ? BillItem{} : items.front();
}

TEST(BilledTime, IsRoundedUpAndAtLeastTheMinimum) {
  EXPECT_EQ(billed_time(61.2_s, kPerSecond), 62_s);
  EXPECT_EQ(billed_time(62_s, kPerSecond), 62_s);
  EXPECT_EQ(billed_time(0_s, kPerSecond), 60_s);
  EXPECT_EQ(billed_time(1_s, kPerHour), 3600_s);
  EXPECT_EQ(billed_time(3601_s, kPerHour), 7200_s);
  // A minimum that is no multiple of the granularity is rounded up as well.
  EXPECT_EQ(billed_time(1_s, {.granularity = 60_s, .minimum = 90_s}), 120_s);
}

// Less than half a nanosecond over the hour is a double's rounding, not another hour.
TEST(BilledTime, DoesNotBillTheRoundingOfADouble) {
  EXPECT_EQ(billed_time(Seconds{3600 + 1e-10}, kPerHour), 3600_s);
  EXPECT_EQ(billed_time(Seconds{3600 + 2e-9}, kPerHour), 7200_s);
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

// The amount is rounded once, for all nodes: 3 x 1 micro-dollar/h for 20 minutes is one micro-dollar, not three times
// nothing.
TEST(InstanceHours, AreRoundedOnceToTheMicroDollar) {
  EXPECT_EQ(instance_hours("cheap", 3, MicroUsdPerHour{1}, 1200_s, kPerSecond).usd, MicroUsd{1});
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
    const Seconds billed = billed_time(metered, rule);
    RC_ASSERT(billed >= metered);
    RC_ASSERT(billed >= rule.minimum);
    RC_ASSERT(billed < std::max(metered, rule.minimum) + rule.granularity);
    RC_ASSERT(item.usd == cost(nodes * price, billed));
    sum += item.usd.value;
    bill.items.push_back(item);
  }
  RC_ASSERT(bill.total() == MicroUsd{sum});
}

}  // namespace
}  // namespace ganymede
