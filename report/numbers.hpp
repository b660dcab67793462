#pragma once
// How numbers are written in tables.

#include <cstddef>
#include <cstdint>
#include <string>

#include "common/json_fwd.hpp"
#include "common/units.hpp"

namespace ganymede::report {

/// The duration as "1:02:03"; below ten minutes in seconds, for example "599.0 s".
std::string clock(double seconds);
/// The same in the unit of `longest`, the longest duration of a column, so that a column has one unit.
std::string clock_like(double seconds, double longest);
/// A share from 0 to 1 in percent, for example "25.0 %" for 0.25.
std::string percent(double share);
/// A share with its sign, for example "+2.5 %"; what rounds to nothing is "0.0 %".
std::string signed_percent(double share);
/// Dollars without a sign, with two decimals, or with four below one dollar.
std::string usd(double amount);
/// An amount that a document states exactly ("12.345678"), for a table: cents, below a dollar up to four
/// decimals, and "< 0.0001" for less than that.
std::string usd_cell(const std::string& exact);
inline std::string usd_cell(MicroUsd amount) { return usd_cell(decimal(amount)); }
/// The price of a unit that a document states exactly, for a table or sentence: two to four decimals, below a cent up
/// to six.
std::string price_cell(const std::string& exact);

/// A duration for a sentence, with as many digits as a prediction can have: "9.3 s", "16 min", "5.9 h", "83 h".
std::string spoken_time(double seconds);
/// Dollars for a sentence: cents below 100 USD, whole dollars above, two digits of what is less than ten cents.
std::string spoken_usd(double amount);

/// The whole number that a document has, whatever else it may have there.
/// @throws JsonError if it is no number, or one beyond 64 bits or an int, or as an index below zero
std::int64_t int64_of(const Json& number);
int int_of(const Json& number);
std::size_t index_of(const Json& number);

/// The number as JSON has it, with all digits.
std::string as_in_json(double number);

/// Four digits, or all before the point: "0.1235", "14731".
std::string shown_rate(double a_second);

/// " (LOW .. HIGH)" for a sentence, the ends written by `shown`, a unit that both have once; nothing if both read the
/// same.
std::string spoken_range(double low, double high, auto&& shown) {
  std::string from = shown(low), to = shown(high);
  if (from == to) return "";
  const std::size_t space = from.find(' ');
  if (space != std::string::npos && to.ends_with(from.substr(space))) from.resize(space);
  return " (" + from + " .. " + to + ")";
}

/// "LOW .. HIGH", with both ends written by `shown`.
std::string range(double low, double high, auto&& shown) { return shown(low) + " .. " + shown(high); }

}  // namespace ganymede::report
