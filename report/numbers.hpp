#pragma once
// How numbers are written in tables.

#include <cstdint>
#include <string>

namespace ganymede::report {

/// The duration as "1:02:03"; below ten minutes in seconds, for example "599.0 s".
std::string clock(double seconds);
/// The same in the unit of `longest`, the longest duration of a column, so that a column has one unit.
std::string clock_like(double seconds, double longest);
/// A share from 0 to 1 in percent, for example "25.0 %" for 0.25.
std::string percent(double share);
/// Dollars without a sign, with two decimals, or with four below one dollar.
std::string usd(double amount);

/// A whole number with its thousands apart, for example "20,000,000".
std::string with_thousands(std::int64_t number);

/// "LOW .. HIGH", with both ends written by `shown`.
std::string range(double low, double high, auto&& shown) { return shown(low) + " .. " + shown(high); }

}  // namespace ganymede::report
