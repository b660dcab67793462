#pragma once
// How numbers are written in tables.

#include <string>

namespace ganymede::report {

/// "1:02:03", but "599.0 s" or the like below ten minutes.
std::string clock(double seconds);
std::string percent(double share);
std::string usd(double amount);

std::string range(double low, double high, auto&& shown) { return shown(low) + " .. " + shown(high); }

}  // namespace ganymede::report
