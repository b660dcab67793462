#include "report/numbers.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <string>

namespace ganymede::report {

std::string clock(double seconds) { return clock_like(seconds, seconds); }

std::string clock_like(double seconds, double longest) {
  if (longest < 600) return fmt::format("{:.1f} s", seconds);
  const std::int64_t whole = std::llround(seconds);
  return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
}

std::string percent(double share) { return fmt::format("{:.1f} %", 100 * share); }
std::string usd(double amount) { return amount < 1 ? fmt::format("{:.4f}", amount) : fmt::format("{:.2f}", amount); }

std::string with_thousands(std::int64_t number) {
  std::string out = std::to_string(number);
  const std::size_t first = number < 0 ? 1 : 0;
  for (std::size_t at = out.size(); at > first + 3;) out.insert(at -= 3, ",");
  return out;
}

}  // namespace ganymede::report
