#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <limits>

#include "common/errors.hpp"
#include "common/units.hpp"
#include "support/errors.hpp"

namespace ganymede {
namespace {

using namespace literals;
using testing::HasSubstr;

constexpr MicroUsdPerHour usd_per_hour(std::int64_t dollars) { return {dollars * 1'000'000}; }

TEST(Price, IsReadDigitByDigit) {
  const auto price = [](const char* text) { return parse_quantity<MicroUsdPerHour>(text).value; };
  EXPECT_EQ(price("3.06USD/h"), 3'060'000);
  EXPECT_EQ(price("0.1 USD/h"), 100'000);  // has no exact double
  EXPECT_EQ(price("12USD/h"), 12'000'000);
  EXPECT_EQ(price("0.000001USD/h"), 1);
  EXPECT_EQ(price("0USD/h"), 0);
  EXPECT_EQ(price("999999999.999999USD/h"), 999'999'999'999'999);
}

TEST(Price, SaysWhatIsWrong) {
  const auto message = [](const char* text) {
    return message_of<std::invalid_argument>([&] { parse_quantity<MicroUsdPerHour>(text); });
  };
  EXPECT_EQ(message("3.06"), "\"3.06\" has no unit; write for example \"3.06USD/h\"");
  EXPECT_THAT(message("3.06EUR/h"), HasSubstr("has the unit \"EUR/h\", which is not USD/h"));
  EXPECT_THAT(message("3.06USD"), HasSubstr("which is not USD/h"));
  EXPECT_THAT(message("0.0000001USD/h"), HasSubstr("more than six decimals"));
  EXPECT_THAT(message("-1USD/h"), HasSubstr("does not start with a number"));
  EXPECT_THAT(message("USD/h"), HasSubstr("does not start with a number"));
  EXPECT_THAT(message("1.2.3USD/h"), HasSubstr("is not a decimal number"));
  EXPECT_THAT(message(".5USD/h"), HasSubstr("is not a decimal number"));
  EXPECT_THAT(message("5.USD/h"), HasSubstr("is not a decimal number"));
  EXPECT_THAT(message("1e3USD/h"), HasSubstr("has the unit \"e3USD/h\""));
  EXPECT_THAT(message("nanUSD/h"), HasSubstr("does not start with a number"));
  EXPECT_THAT(message("1234567890USD/h"), HasSubstr("is out of range"));
}

RC_GTEST_PROP(Price, IsTakenBackFromItsDecimal, ()) {
  const MicroUsdPerHour price{*rc::gen::inRange<std::int64_t>(0, 1'000'000'000'000'000)};
  RC_ASSERT(parse_quantity<MicroUsdPerHour>(decimal(price) + "USD/h") == price);
  RC_ASSERT(parse_quantity<MicroUsdPerHour>(to_string(price)) == price);
}

TEST(Decimal, KeepsTwoToSixPlaces) {
  EXPECT_EQ(decimal(MicroUsd{0}), "0.00");
  EXPECT_EQ(decimal(MicroUsd{12'340'000}), "12.34");
  EXPECT_EQ(decimal(MicroUsd{12'300'000}), "12.30");
  EXPECT_EQ(decimal(MicroUsd{12'345'000}), "12.345");
  EXPECT_EQ(decimal(MicroUsd{1}), "0.000001");
  EXPECT_EQ(decimal(MicroUsd{-2'500'000}), "-2.50");
  EXPECT_EQ(decimal(MicroUsd{std::numeric_limits<std::int64_t>::min()}), "-9223372036854.775808");
  EXPECT_EQ(decimal(MicroUsdPerHour{450'000}), "0.45");
  EXPECT_EQ(to_string(MicroUsd{12'340'000}), "12.34 USD");
}

TEST(Cost, IsPriceTimesTime) {
  EXPECT_EQ(cost(usd_per_hour(3), Seconds{3600}).value, 3'000'000);
  // 3.06 USD/h for 1234 s: 3,060,000 x 1234 / 3600 = 1,048,900 micro-dollars.
  EXPECT_EQ(cost({3'060'000}, Seconds{1234}).value, 1'048'900);
  EXPECT_EQ(cost(usd_per_hour(3), 0_s).value, 0);
  EXPECT_EQ(cost({0}, Seconds{3600}).value, 0);
}

TEST(Cost, RoundsHalfUp) {
  // 1 micro-dollar an hour: half a micro-dollar is due after 1800 s.
  EXPECT_EQ(cost({1}, Seconds{1799.999}).value, 0);
  EXPECT_EQ(cost({1}, Seconds{1800}).value, 1);
  EXPECT_EQ(cost({1}, Seconds{5399.999}).value, 1);
  EXPECT_EQ(cost({1}, Seconds{5400}).value, 2);
}

TEST(Cost, IsExactWhereDoublesAreNot) {
  // 999,999,999.999999 USD/h for 7.2 s is 1/500 h: 1,999,999,999,999.998 micro-dollars, so ...2,000,000,000,000.
  EXPECT_EQ(cost({999'999'999'999'999}, Seconds{7.2}).value, 2'000'000'000'000);
  // 1 h and 1 ns: 3,600,000,000,001 ns x 3,600,000,000,000 uUSD/h / 3,600,000,000,000 ns/h.
  EXPECT_EQ(cost({3'600'000'000'000}, Seconds{3600} + Seconds{1e-9}).value, 3'600'000'000'001);
}

TEST(Cost, RefusesWhatDoesNotFit) {
  EXPECT_THROW(cost(usd_per_hour(1), Seconds{std::numeric_limits<double>::infinity()}), Failure);
  EXPECT_THROW(cost(usd_per_hour(1), Seconds{std::numeric_limits<double>::quiet_NaN()}), Failure);
  EXPECT_THROW(cost(usd_per_hour(1), Seconds{1e10}), Failure);
  EXPECT_THROW(cost({999'999'999'999'999}, Seconds{9e9}), Failure);
}

// Whole hours have no rounding: the cost of a sum is the sum of the costs.
RC_GTEST_PROP(Cost, AddsUpOverWholeHours, ()) {
  const MicroUsdPerHour price{*rc::gen::inRange<std::int64_t>(0, 1'000'000'000)};
  const int a = *rc::gen::inRange(0, 10'000);
  const int b = *rc::gen::inRange(0, 10'000);
  const auto hours = [](int count) { return Seconds{3600.0 * count}; };
  RC_ASSERT(cost(price, hours(a)) + cost(price, hours(b)) == cost(price, hours(a + b)));
  RC_ASSERT(cost(a * price, hours(1)) == cost(price, hours(a)));
}

}  // namespace
}  // namespace ganymede
