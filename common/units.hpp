#pragma once
// Physical quantities as types. Seconds cannot be made from a bare number by accident, Bytes cannot be added to Flops,
// and only products and quotients with a meaning are defined. Values are kept in SI units.

#include <fmt/format.h>

#include <compare>
#include <cstdint>
#include <ostream>
#include <string>
#include <string_view>

namespace ganymede {

template <class Unit>
struct Quantity {
  double si = 0;

  constexpr Quantity() = default;
  constexpr explicit Quantity(double value) : si(value) {}
  constexpr auto operator<=>(const Quantity&) const = default;

  constexpr Quantity operator-() const { return Quantity{-si}; }
  constexpr Quantity& operator+=(Quantity other) { return si += other.si, *this; }
  constexpr Quantity& operator-=(Quantity other) { return si -= other.si, *this; }
  constexpr Quantity& operator*=(double factor) { return si *= factor, *this; }
  friend constexpr Quantity operator+(Quantity a, Quantity b) { return Quantity{a.si + b.si}; }
  friend constexpr Quantity operator-(Quantity a, Quantity b) { return Quantity{a.si - b.si}; }
  friend constexpr Quantity operator*(Quantity a, double factor) { return Quantity{a.si * factor}; }
  friend constexpr Quantity operator*(double factor, Quantity a) { return Quantity{a.si * factor}; }
  friend constexpr Quantity operator/(Quantity a, double divisor) { return Quantity{a.si / divisor}; }
  friend constexpr double operator/(Quantity a, Quantity b) { return a.si / b.si; }
};

using Seconds = Quantity<struct SecondsUnit>;
using Bytes = Quantity<struct BytesUnit>;
using BytesPerSecond = Quantity<struct BytesPerSecondUnit>;
using Flops = Quantity<struct FlopsUnit>;  ///< an amount of work; a multiply-add counts as 2
using FlopsPerSecond = Quantity<struct FlopsPerSecondUnit>;
using Watts = Quantity<struct WattsUnit>;
using Joules = Quantity<struct JoulesUnit>;
using GramsPerKwh = Quantity<struct GramsPerKwhUnit>;  ///< carbon intensity, gCO2e per kWh

constexpr Seconds operator/(Bytes size, BytesPerSecond rate) { return Seconds{size.si / rate.si}; }
constexpr Seconds operator/(Flops work, FlopsPerSecond rate) { return Seconds{work.si / rate.si}; }
constexpr BytesPerSecond operator/(Bytes size, Seconds time) { return BytesPerSecond{size.si / time.si}; }
constexpr FlopsPerSecond operator/(Flops work, Seconds time) { return FlopsPerSecond{work.si / time.si}; }
constexpr Bytes operator*(BytesPerSecond rate, Seconds time) { return Bytes{rate.si * time.si}; }
constexpr Joules operator*(Watts power, Seconds time) { return Joules{power.si * time.si}; }

/// An amount of money, an integer number of micro-dollars so that sums are exact.
struct MicroUsd {
  std::int64_t value = 0;
  constexpr auto operator<=>(const MicroUsd&) const = default;
  constexpr MicroUsd& operator+=(MicroUsd other) { return value += other.value, *this; }
  friend constexpr MicroUsd operator+(MicroUsd a, MicroUsd b) { return {a.value + b.value}; }
  friend constexpr MicroUsd operator-(MicroUsd a, MicroUsd b) { return {a.value - b.value}; }
};

/// A price, an integer number of micro-dollars per hour.
struct MicroUsdPerHour {
  std::int64_t value = 0;
  constexpr auto operator<=>(const MicroUsdPerHour&) const = default;
  friend constexpr MicroUsdPerHour operator*(std::int64_t count, MicroUsdPerHour price) {
    return {count * price.value};
  }
};

/// The amount due for `time` at `price`, rounded to the nearest micro-dollar, halves away from zero. Computed exactly
/// in integers from the time in whole nanoseconds. Throws Failure if the amount does not fit.
MicroUsd cost(MicroUsdPerHour price, Seconds time);

/// Reads a number with its unit: "5us", "25Gbit/s", "64MiB", "15.7Tflop/s", "300W", "415.75g/kWh". For a number without
/// a unit, an unknown unit or a number that is not finite it throws std::invalid_argument, whose message says what to
/// write instead.
template <class Q>
Q parse_quantity(std::string_view text);
template <>
Seconds parse_quantity(std::string_view);
template <>
Bytes parse_quantity(std::string_view);
template <>
BytesPerSecond parse_quantity(std::string_view);
template <>
FlopsPerSecond parse_quantity(std::string_view);
template <>
Watts parse_quantity(std::string_view);
template <>
GramsPerKwh parse_quantity(std::string_view);
template <>
MicroUsdPerHour parse_quantity(std::string_view);  ///< "3.06USD/h", at most six decimals

/// Short text for people, with about four significant digits, such as "1.234 ms", "64 MiB" or "15.7 TFLOP/s".
std::string to_string(Seconds);
std::string to_string(Bytes);
std::string to_string(BytesPerSecond);
std::string to_string(Flops);
std::string to_string(FlopsPerSecond);
std::string to_string(Watts);
std::string to_string(Joules);
std::string to_string(GramsPerKwh);
std::string to_string(MicroUsd);         ///< exact decimal with a currency: "12.34 USD"
std::string to_string(MicroUsdPerHour);  ///< "3.06 USD/h"

/// The exact amount in dollars as results write it in JSON, with two to six decimals: "12.34".
std::string decimal(MicroUsd);
std::string decimal(MicroUsdPerHour);

template <class Unit>
std::ostream& operator<<(std::ostream& out, Quantity<Unit> quantity) {
  return out << to_string(quantity);
}
inline std::ostream& operator<<(std::ostream& out, MicroUsd money) { return out << to_string(money); }
inline std::ostream& operator<<(std::ostream& out, MicroUsdPerHour price) { return out << to_string(price); }

// clang-format off
namespace literals {
constexpr Seconds operator""_s(long double v) { return Seconds{static_cast<double>(v)}; }
constexpr Seconds operator""_s(unsigned long long v) { return Seconds{static_cast<double>(v)}; }
constexpr Seconds operator""_ms(long double v) { return Seconds{static_cast<double>(v) * 1e-3}; }
constexpr Seconds operator""_ms(unsigned long long v) { return Seconds{static_cast<double>(v) * 1e-3}; }
constexpr Seconds operator""_us(long double v) { return Seconds{static_cast<double>(v) * 1e-6}; }
constexpr Seconds operator""_us(unsigned long long v) { return Seconds{static_cast<double>(v) * 1e-6}; }
constexpr Bytes operator""_B(unsigned long long v) { return Bytes{static_cast<double>(v)}; }
constexpr Bytes operator""_KiB(unsigned long long v) { return Bytes{static_cast<double>(v) * 1024}; }
constexpr Bytes operator""_MiB(unsigned long long v) { return Bytes{static_cast<double>(v) * 1048576}; }
constexpr Bytes operator""_GiB(unsigned long long v) { return Bytes{static_cast<double>(v) * 1073741824}; }
constexpr BytesPerSecond operator""_GB_per_s(long double v) { return BytesPerSecond{static_cast<double>(v) * 1e9}; }
constexpr BytesPerSecond operator""_GB_per_s(unsigned long long v) { return BytesPerSecond{static_cast<double>(v) * 1e9}; }
constexpr BytesPerSecond operator""_Gbit_per_s(long double v) { return BytesPerSecond{static_cast<double>(v) * 1.25e8}; }
constexpr BytesPerSecond operator""_Gbit_per_s(unsigned long long v) { return BytesPerSecond{static_cast<double>(v) * 1.25e8}; }
constexpr FlopsPerSecond operator""_Tflop_per_s(long double v) { return FlopsPerSecond{static_cast<double>(v) * 1e12}; }
}  // namespace literals
// clang-format on

}  // namespace ganymede

template <class Unit>
struct fmt::formatter<ganymede::Quantity<Unit>> : fmt::formatter<std::string> {
  template <class Context>
  auto format(ganymede::Quantity<Unit> quantity, Context& context) const {
    return fmt::formatter<std::string>::format(to_string(quantity), context);
  }
};
