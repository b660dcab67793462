#include "sim/ledger/bill.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "common/errors.hpp"
#include "common/units.hpp"
#include "sim/ledger/nanoseconds.hpp"

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
