#include "common/units.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <concepts>
#include <limits>
#include <stdexcept>

#include "support/errors.hpp"

namespace ganymede {
namespace {

using namespace literals;
using testing::HasSubstr;

template <class A, class B>
concept Addable = requires(A a, B b) {
  a + b;
};
template <class A, class B>
concept Multipliable = requires(A a, B b) {
  a* b;
};
template <class A, class B>
concept Divisible = requires(A a, B b) {
  a / b;
};
template <class A, class B>
concept Comparable = requires(A a, B b) {
  a < b;
};

static_assert(Addable<Seconds, Seconds> && Comparable<Bytes, Bytes> && Multipliable<Seconds, double>);
static_assert(!Addable<Seconds, Bytes> && !Addable<Seconds, double> && !Addable<BytesPerSecond, FlopsPerSecond>);
static_assert(!Addable<MicroUsd, MicroUsdPerHour> && !Addable<MicroUsd, std::int64_t>);
static_assert(!Multipliable<Seconds, Seconds> && !Multipliable<Bytes, Seconds> && !Multipliable<MicroUsd, double>);
static_assert(!Divisible<Bytes, FlopsPerSecond> && !Divisible<Seconds, Bytes> && !Divisible<Flops, BytesPerSecond>);
static_assert(!Comparable<Seconds, Bytes> && !Comparable<Seconds, double>);
static_assert(!std::convertible_to<double, Seconds> && !std::convertible_to<Seconds, double>);
static_assert(std::same_as<decltype(Bytes{} / BytesPerSecond{}), Seconds>);
static_assert(std::same_as<decltype(Flops{} / Seconds{}), FlopsPerSecond>);
static_assert(std::same_as<decltype(Watts{} * Seconds{}), Joules>);
static_assert(std::same_as<decltype(Seconds{} / Seconds{}), double>);

static_assert((256_MiB / 25_Gbit_per_s).si == 256.0 * 1048576 / (25e9 / 8));
static_assert((5_us).si == 5 * 1e-6 && (2_KiB).si == 2048 && 1_GiB == 1024 * (1_MiB));
static_assert((-(3_s) + 5_s) * 2 == 4_s && 6_s / 2_s == 3);

TEST(ParseQuantity, KnowsEachUnit) {
  const auto seconds = [](const char* text) { return parse_quantity<Seconds>(text).si; };
  EXPECT_DOUBLE_EQ(seconds("7ns"), 7e-9);
  EXPECT_DOUBLE_EQ(seconds("5us"), 5e-6);
  EXPECT_DOUBLE_EQ(seconds("1.5ms"), 1.5e-3);
  EXPECT_EQ(seconds("2s"), 2);
  EXPECT_EQ(seconds("10min"), 600);
  EXPECT_EQ(seconds("2h"), 7200);
  EXPECT_EQ(seconds("1d"), 24 * 3600);

  const auto bytes = [](const char* text) { return parse_quantity<Bytes>(text).si; };
  EXPECT_EQ(bytes("9B"), 9);
  EXPECT_EQ(bytes("1kB"), 1000);
  EXPECT_EQ(bytes("1MB"), 1e6);
  EXPECT_EQ(bytes("16GB"), 16e9);
  EXPECT_EQ(bytes("2TB"), 2e12);
  EXPECT_EQ(bytes("1KiB"), 1024);
  EXPECT_EQ(bytes("64MiB"), 64.0 * 1024 * 1024);
  EXPECT_EQ(bytes("1GiB"), std::pow(1024, 3));
  EXPECT_EQ(bytes("1TiB"), std::pow(1024, 4));

  const auto rate = [](const char* text) { return parse_quantity<BytesPerSecond>(text).si; };
  EXPECT_EQ(rate("1B/s"), 1);
  EXPECT_EQ(rate("3kB/s"), 3e3);
  EXPECT_EQ(rate("3MB/s"), 3e6);
  EXPECT_EQ(rate("900GB/s"), 900e9);
  EXPECT_EQ(rate("2TB/s"), 2e12);
  EXPECT_EQ(rate("1KiB/s"), 1024);
  EXPECT_EQ(rate("1MiB/s"), std::pow(1024, 2));
  EXPECT_EQ(rate("1GiB/s"), std::pow(1024, 3));
  EXPECT_EQ(rate("8bit/s"), 1);
  EXPECT_EQ(rate("8kbit/s"), 1e3);
  EXPECT_EQ(rate("8Mbit/s"), 1e6);
  EXPECT_EQ(rate("25Gbit/s"), 25e9 / 8);
  EXPECT_EQ(rate("8Tbit/s"), 1e12);
}

TEST(ParseQuantity, KnowsEachUnitOfRatesPowerAndCarbon) {
  const auto flops = [](const char* text) { return parse_quantity<FlopsPerSecond>(text).si; };
  EXPECT_EQ(flops("1flop/s"), 1);
  EXPECT_EQ(flops("2Mflop/s"), 2e6);
  EXPECT_EQ(flops("2Gflop/s"), 2e9);
  EXPECT_DOUBLE_EQ(flops("15.7Tflop/s"), 15.7e12);
  EXPECT_EQ(flops("1Pflop/s"), 1e15);
  EXPECT_DOUBLE_EQ(parse_quantity<Watts>("5mW").si, 5e-3);
  EXPECT_EQ(parse_quantity<Watts>("300W").si, 300);
  EXPECT_EQ(parse_quantity<Watts>("2kW").si, 2000);
  EXPECT_EQ(parse_quantity<Watts>("1MW").si, 1e6);
  EXPECT_EQ(parse_quantity<GramsPerKwh>("415.75g/kWh").si, 415.75);
  EXPECT_EQ(parse_quantity<GramsPerKwh>("0.4kg/kWh").si, 400);
}

TEST(ParseQuantity, TakesASpaceAnExponentAndASign) {
  EXPECT_EQ(parse_quantity<Seconds>("2 s"), 2_s);
  EXPECT_EQ(parse_quantity<Seconds>("1.5e3s"), 1500_s);
  EXPECT_EQ(parse_quantity<Seconds>("-2s"), -(2_s));
}

TEST(ParseQuantity, SaysWhatIsWrongAndWhatToWrite) {
  const auto seconds = [](const char* text) {
    return message_of<std::invalid_argument>([&] { parse_quantity<Seconds>(text); });
  };
  EXPECT_EQ(seconds("5"), "\"5\" has no unit; write for example \"5us\"");
  EXPECT_THAT(seconds("5xs"), HasSubstr("has the unit \"xs\", which is none of ns, us, ms, s, min, h, d"));
  EXPECT_THAT(seconds("5 MB"), HasSubstr("has the unit \"MB\""));
  EXPECT_THAT(seconds("us"), HasSubstr("does not start with a number"));
  EXPECT_THAT(seconds(""), HasSubstr("does not start with a number"));
  EXPECT_THAT(seconds("five us"), HasSubstr("write for example \"5us\""));
  EXPECT_THAT(seconds("nan s"), HasSubstr("does not start with a number"));
  EXPECT_THAT(seconds("infs"), HasSubstr("does not start with a number"));
  EXPECT_THAT(seconds("1e999s"), HasSubstr("out of range"));
  EXPECT_THAT(seconds("1e308h"), HasSubstr("out of range"));
}

TEST(ParseQuantity, RejectsABareNumberForEveryQuantity) {
  EXPECT_THROW(parse_quantity<Bytes>("64"), std::invalid_argument);
  EXPECT_THROW(parse_quantity<BytesPerSecond>("64"), std::invalid_argument);
  EXPECT_THROW(parse_quantity<FlopsPerSecond>("64"), std::invalid_argument);
  EXPECT_THROW(parse_quantity<Watts>("64"), std::invalid_argument);
  EXPECT_THROW(parse_quantity<GramsPerKwh>("64"), std::invalid_argument);
  EXPECT_THROW(parse_quantity<MicroUsdPerHour>("64"), std::invalid_argument);
  // A bit is not a byte: neither unit does for the other's quantity.
  EXPECT_THROW(parse_quantity<Bytes>("8bit"), std::invalid_argument);
  EXPECT_THROW(parse_quantity<BytesPerSecond>("8GB"), std::invalid_argument);
}

// Shortest text that tells a double from its neighbours, with the unit whose factor is 1: nothing may be lost.
RC_GTEST_PROP(ParseQuantity, TakesBackWhatWasWrittenInFull, ()) {
  const double value = static_cast<double>(*rc::gen::arbitrary<std::int64_t>()) * 0x1p-20;
  RC_ASSERT(parse_quantity<Seconds>(fmt::format("{}s", value)).si == value);
  RC_ASSERT(parse_quantity<Bytes>(fmt::format("{}B", value)).si == value);
  RC_ASSERT(parse_quantity<BytesPerSecond>(fmt::format("{}B/s", value)).si == value);
  RC_ASSERT(parse_quantity<FlopsPerSecond>(fmt::format("{}flop/s", value)).si == value);
}

// to_string keeps about four digits, so what is read back from it may differ by half of the fourth.
RC_GTEST_PROP(ToString, IsReadBackToFourDigits, ()) {
  const double mantissa = *rc::gen::inRange(100'000, 999'999);
  const double value = mantissa * std::pow(10.0, *rc::gen::inRange(-12, 6));
  RC_ASSERT(std::abs(parse_quantity<Seconds>(to_string(Seconds{value})).si / value - 1) < 0.5e-3);
  RC_ASSERT(std::abs(parse_quantity<BytesPerSecond>(to_string(BytesPerSecond{value * 1e6})).si / (value * 1e6) - 1) <
            0.5e-3);
}

TEST(ToString, ChoosesAReadableUnit) {
  EXPECT_EQ(to_string(1.2344_ms), "1.234 ms");
  EXPECT_EQ(to_string(0_s), "0 ns");
  EXPECT_EQ(to_string(Seconds{90}), "90 s");
  EXPECT_EQ(to_string(Seconds{150}), "2.5 min");
  EXPECT_EQ(to_string(Seconds{10800}), "3 h");
  EXPECT_EQ(to_string(64_MiB), "64 MiB");
  EXPECT_EQ(to_string(Bytes{1000}), "1000 B");
  EXPECT_EQ(to_string(12.5_GB_per_s), "12.5 GB/s");
  EXPECT_EQ(to_string(Flops{2e9}), "2 GFLOP");
  EXPECT_EQ(to_string(15.7_Tflop_per_s), "15.7 TFLOP/s");
  EXPECT_EQ(to_string(Watts{300}), "300 W");
  EXPECT_EQ(to_string(Joules{3.6e6}), "3.6 MJ");
  EXPECT_EQ(to_string(GramsPerKwh{415.75}), "415.8 g/kWh");
  EXPECT_EQ(to_string(-(5_us)), "-5 us");
}

TEST(ToString, CarriesOverToTheNextUnitWhenDigitsRoundUp) {
  EXPECT_EQ(to_string(Seconds{0.99999}), "1 s");
  EXPECT_EQ(to_string(Bytes{1023.99}), "1 KiB");
  EXPECT_EQ(to_string(BytesPerSecond{999.99e6}), "1 GB/s");
}

TEST(ToString, SurvivesWhatIsNoNumber) {
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_THAT(to_string(Seconds{infinity}), HasSubstr("inf"));
  EXPECT_THAT(to_string(Seconds{std::nan("")}), HasSubstr("nan"));
  EXPECT_THAT(to_string(BytesPerSecond{infinity}), HasSubstr("inf"));
  EXPECT_THAT(to_string(GramsPerKwh{infinity}), HasSubstr("inf"));
}

TEST(ToString, IsWhatStreamsAndFormatPrint) {
  std::ostringstream out;
  out << 5_us << ", " << MicroUsd{3'060'000} << ", " << MicroUsdPerHour{450'000};
  EXPECT_EQ(out.str(), "5 us, 3.06 USD, 0.45 USD/h");
  EXPECT_EQ(fmt::format("{:>8}", 5_us), "    5 us");
}

}  // namespace
}  // namespace ganymede
