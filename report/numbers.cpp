#include "report/numbers.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstdint>

namespace ganymede::report {

std::string clock(double seconds) { return clock_like(seconds, seconds); }

std::string clock_like(double seconds, double longest) {
  if (longest < 600) return fmt::format("{:.1f} s", seconds);
  const std::int64_t whole = std::llround(seconds);
  return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
}

std::string percent(double share) { return fmt::format("{:.1f} %", 100 * share); }
std::string usd(double amount) { return amount < 1 ? fmt::format("{:.4f}", amount) : fmt::format("{:.2f}", amount); }

}  // namespace ganymede::report
