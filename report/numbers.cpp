#include "report/numbers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <string>

#include "common/json_value.hpp"
#include "common/text.hpp"

namespace ganymede::report {

namespace {

[[noreturn]] void refuse(const Json& number, const char* expected) {
  throw JsonError(fmt::format("found {}, expected {}", number.dump(), expected));
}

}  // namespace

std::int64_t int64_of(const Json& number) {
  // The library converts a float of any size, which is undefined beyond the integers. 2^63 itself is beyond them.
  if (number.is_number_float() && !(std::abs(number.get<double>()) < 0x1p63)) refuse(number, "a whole number");
  return number.get<std::int64_t>();
}

int int_of(const Json& number) {
  const std::int64_t whole = int64_of(number);
  if (std::abs(static_cast<double>(whole)) > std::numeric_limits<int>::max()) refuse(number, "a smaller number");
  return static_cast<int>(whole);
}

std::size_t index_of(const Json& number) {
  const std::int64_t whole = int64_of(number);
  if (whole < 0) refuse(number, "a number from 0");
  return static_cast<std::size_t>(whole);
}

std::string as_in_json(double number) { return Json(number).dump(); }

std::string clock(double seconds) { return clock_like(seconds, seconds); }

std::string clock_like(double seconds, double longest) {
  if (longest < 600) return fmt::format("{:.1f} s", seconds);
  const std::int64_t whole = std::llround(seconds);
  return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
}

std::string percent(double share) { return fmt::format("{:.1f} %", 100 * share); }
std::string signed_percent(double share) {
  std::string text = fmt::format("{:+.1f} %", 100 * share);
  return text.substr(1) == "0.0 %" ? "0.0 %" : text;
}
std::string usd(double amount) { return amount < 1 ? fmt::format("{:.4f}", amount) : fmt::format("{:.2f}", amount); }

namespace {
/// The decimal without zeros at its end, but for cents.
std::string without_zeros(std::string decimal) {
  const std::size_t cents = decimal.find('.') + 3;
  decimal.erase(std::max(cents, decimal.find_last_not_of('0') + 1));
  return decimal;
}
}  // namespace

std::string usd_cell(const std::string& exact) {
  const double amount = std::strtod(exact.c_str(), nullptr);
  return amount > 0 && amount < 0.00005 ? "< 0.0001" : without_zeros(usd(amount));
}

std::string price_cell(const std::string& exact) {
  const double price = std::strtod(exact.c_str(), nullptr);
  return without_zeros(fmt::format("{:.{}f}", price, price < 0.01 ? 6 : 4));
}

std::string spoken_time(double seconds) {
  // Hours from two on, minutes from two on.
  const bool hours = seconds >= 7200, minutes = !hours && seconds >= 120;
  const double value = hours ? seconds / 3600 : minutes ? seconds / 60 : seconds;
  return fmt::format(fmt::runtime(value < 9.95 ? "{:.2g} {}" : "{:.0f} {}"), value,
                     hours     ? "h"
                     : minutes ? "min"
                               : "s");
}

std::string spoken_usd(double amount) {
  if (amount >= 99.995) return with_thousands(std::llround(amount));
  return amount >= 0.0995 || amount == 0 ? fmt::format("{:.2f}", amount) : fmt::format("{:.2g}", amount);
}

std::string shown_rate(double a_second) {
  return a_second < 1000 ? fmt::format("{:.4g}", a_second) : fmt::format("{:.0f}", a_second);
}

}  // namespace ganymede::report
