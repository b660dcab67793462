#include "common/units.hpp"

#include <charconv>
#include <cmath>
#include <limits>
#include <span>
#include <stdexcept>

#include "common/errors.hpp"

namespace ganymede {
namespace {

struct UnitName {
  std::string_view name;
  double factor;
};

// IEC prefixes are powers of 1024, SI prefixes powers of 1000; a bit is an eighth of a byte.
constexpr UnitName kSeconds[] = {{"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3}, {"s", 1},
                                 {"min", 60},  {"h", 3600},  {"d", 86400}};
constexpr UnitName kBytes[] = {{"B", 1},        {"kB", 1e3},     {"MB", 1e6},     {"GB", 1e9},    {"TB", 1e12},
                               {"KiB", 0x1p10}, {"MiB", 0x1p20}, {"GiB", 0x1p30}, {"TiB", 0x1p40}};
constexpr UnitName kBytesPerSecond[] = {
    {"B/s", 1},          {"kB/s", 1e3},       {"MB/s", 1e6},       {"GB/s", 1e9},      {"TB/s", 1e12},
    {"KiB/s", 0x1p10},   {"MiB/s", 0x1p20},   {"GiB/s", 0x1p30},   {"bit/s", 1.0 / 8}, {"kbit/s", 1e3 / 8},
    {"Mbit/s", 1e6 / 8}, {"Gbit/s", 1e9 / 8}, {"Tbit/s", 1e12 / 8}};
constexpr UnitName kFlopsPerSecond[] = {
    {"flop/s", 1}, {"Mflop/s", 1e6}, {"Gflop/s", 1e9}, {"Tflop/s", 1e12}, {"Pflop/s", 1e15}};
constexpr UnitName kWatts[] = {{"mW", 1e-3}, {"W", 1}, {"kW", 1e3}, {"MW", 1e6}};
constexpr UnitName kCarbon[] = {{"g/kWh", 1}, {"kg/kWh", 1e3}};

[[noreturn]] void reject(std::string_view text, std::string_view reason, std::string_view example) {
  throw std::invalid_argument(fmt::format("\"{}\" {}; write for example \"{}\"", text, reason, example));
}

/// Splits "12.5 GB/s" into its number and its unit.
std::pair<double, std::string_view> split(std::string_view text, std::string_view example) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc::result_out_of_range) reject(text, "is out of range", example);
  if (error != std::errc{} || !std::isfinite(number)) reject(text, "does not start with a number", example);
  std::string_view unit = text.substr(static_cast<std::size_t>(end - text.data()));
  while (unit.starts_with(' ')) unit.remove_prefix(1);
  if (unit.empty()) reject(text, "has no unit", example);
  return {number, unit};
}

double parse_with(std::string_view text, std::span<const UnitName> units, std::string_view example) {
  const auto [number, unit] = split(text, example);
  for (const auto& known : units) {
    if (known.name == unit) {
      const double value = number * known.factor;
      if (!std::isfinite(value)) reject(text, "is out of range", example);
      return value;
    }
  }
  std::string names;
  for (const auto& known : units) names += (names.empty() ? "" : ", ") + std::string(known.name);
  reject(text, fmt::format("has the unit \"{}\", which is none of {}", unit, names), example);
}

/// Writes four significant digits without an exponent and without trailing zeros.
std::string digits(double value) {
  if (value == 0) return "0";
  if (!std::isfinite(value)) return fmt::format("{}", value);
  const int magnitude = static_cast<int>(std::floor(std::log10(std::abs(value))));
  std::string text = fmt::format("{:.{}f}", value, std::max(0, 3 - magnitude));
  if (text.find('.') != std::string::npos) {
    text.erase(text.find_last_not_of('0') + 1);
    if (text.ends_with('.')) text.pop_back();
  }
  return text;
}

/// The largest unit of `units` (ascending) in which the number is at least 1.
std::string scaled(double value, std::span<const UnitName> units) {
  const UnitName* best = &units[0];
  for (const auto& unit : units)
    if (std::abs(value) >= unit.factor * 0.99995) best = &unit;
  return digits(value / best->factor) + " " + std::string(best->name);
}

__extension__ using Int128 = __int128;

constexpr std::int64_t kMicro = 1'000'000;

std::string decimal_micro(std::int64_t micro) {
  const bool negative = micro < 0;
  const auto magnitude = negative ? 0 - static_cast<std::uint64_t>(micro) : static_cast<std::uint64_t>(micro);
  std::string text = fmt::format("{}{}.{:06}", negative ? "-" : "", magnitude / kMicro, magnitude % kMicro);
  while (text.ends_with('0') && text[text.size() - 3] != '.') text.pop_back();
  return text;
}

}  // namespace

template <>
Seconds parse_quantity(std::string_view text) {
  return Seconds{parse_with(text, kSeconds, "5us")};
}
template <>
Bytes parse_quantity(std::string_view text) {
  return Bytes{parse_with(text, kBytes, "64MiB")};
}
template <>
BytesPerSecond parse_quantity(std::string_view text) {
  return BytesPerSecond{parse_with(text, kBytesPerSecond, "25Gbit/s")};
}
template <>
FlopsPerSecond parse_quantity(std::string_view text) {
  return FlopsPerSecond{parse_with(text, kFlopsPerSecond, "15.7Tflop/s")};
}
template <>
Watts parse_quantity(std::string_view text) {
  return Watts{parse_with(text, kWatts, "300W")};
}
template <>
GramsPerKwh parse_quantity(std::string_view text) {
  return GramsPerKwh{parse_with(text, kCarbon, "400g/kWh")};
}

template <>
MicroUsdPerHour parse_quantity(std::string_view text) {
  // Decimal digits are read one by one, because a double cannot hold 0.1 exactly and a bill must be exact.
  constexpr std::string_view kExample = "3.06USD/h";
  const std::size_t end = text.find_first_not_of("0123456789.");
  if (end == 0) reject(text, "does not start with a number", kExample);
  std::string_view unit = end == std::string_view::npos ? "" : text.substr(end);
  while (unit.starts_with(' ')) unit.remove_prefix(1);
  if (unit.empty()) reject(text, "has no unit", kExample);
  if (unit != "USD/h") reject(text, fmt::format("has the unit \"{}\", which is not USD/h", unit), kExample);
  std::string_view number = text.substr(0, text.find_first_not_of("0123456789."));
  const std::size_t dot = number.find('.');
  const std::string_view whole = number.substr(0, dot);
  const std::string_view fraction = dot == std::string_view::npos ? "" : number.substr(dot + 1);
  if (whole.empty() || fraction.find('.') != std::string_view::npos || number.ends_with('.'))
    reject(text, "is not a decimal number", kExample);
  if (fraction.size() > 6) reject(text, "has more than six decimals", kExample);
  if (whole.size() > 9) reject(text, "is out of range", kExample);
  std::int64_t micro = 0;
  for (const char digit : whole) micro = micro * 10 + (digit - '0');
  for (std::size_t i = 0; i < 6; ++i) micro = micro * 10 + (i < fraction.size() ? fraction[i] - '0' : 0);
  return {micro};
}

MicroUsd cost(MicroUsdPerHour price, Seconds time) {
  constexpr Int128 kNanosecondsPerHour = 3'600'000'000'000;
  constexpr double kMaxSeconds = 9.2e9;  // 292 years, whose nanoseconds still fit in 64 bits
  if (!(std::abs(time.si) < kMaxSeconds)) throw Failure(fmt::format("cannot bill {} s", time.si));
  const Int128 product = static_cast<Int128>(price.value) * std::llround(time.si * 1e9);
  const Int128 amount =
      (product + (product < 0 ? -kNanosecondsPerHour : kNanosecondsPerHour) / 2) / kNanosecondsPerHour;
  if (amount > std::numeric_limits<std::int64_t>::max() || amount < std::numeric_limits<std::int64_t>::min())
    throw Failure("a bill above 9 trillion USD");
  return {static_cast<std::int64_t>(amount)};
}

std::string to_string(Seconds v) {
  constexpr UnitName kShown[] = {{"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3}, {"s", 1}};
  if (std::abs(v.si) < 120) return scaled(v.si, kShown);
  if (std::abs(v.si) < 2 * 3600) return digits(v.si / 60) + " min";
  return digits(v.si / 3600) + " h";
}
std::string to_string(Bytes v) {
  constexpr UnitName kShown[] = {{"B", 1}, {"KiB", 0x1p10}, {"MiB", 0x1p20}, {"GiB", 0x1p30}, {"TiB", 0x1p40}};
  return scaled(v.si, kShown);
}
std::string to_string(BytesPerSecond v) {
  constexpr UnitName kShown[] = {{"B/s", 1}, {"kB/s", 1e3}, {"MB/s", 1e6}, {"GB/s", 1e9}, {"TB/s", 1e12}};
  return scaled(v.si, kShown);
}
std::string to_string(Flops v) {
  constexpr UnitName kShown[] = {{"FLOP", 1},    {"kFLOP", 1e3},  {"MFLOP", 1e6},
                                 {"GFLOP", 1e9}, {"TFLOP", 1e12}, {"PFLOP", 1e15}};
  return scaled(v.si, kShown);
}
std::string to_string(FlopsPerSecond v) {
  constexpr UnitName kShown[] = {
      {"FLOP/s", 1}, {"MFLOP/s", 1e6}, {"GFLOP/s", 1e9}, {"TFLOP/s", 1e12}, {"PFLOP/s", 1e15}};
  return scaled(v.si, kShown);
}
std::string to_string(Watts v) { return scaled(v.si, kWatts); }
std::string to_string(Joules v) {
  constexpr UnitName kShown[] = {{"J", 1}, {"kJ", 1e3}, {"MJ", 1e6}, {"GJ", 1e9}};
  return scaled(v.si, kShown);
}
std::string to_string(GramsPerKwh v) { return digits(v.si) + " g/kWh"; }
std::string to_string(MicroUsd v) { return decimal(v) + " USD"; }
std::string to_string(MicroUsdPerHour v) { return decimal(v) + " USD/h"; }
std::string decimal(MicroUsd v) { return decimal_micro(v.value); }
std::string decimal(MicroUsdPerHour v) { return decimal_micro(v.value); }

}  // namespace ganymede
