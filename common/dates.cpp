#include "common/dates.hpp"

#include <fmt/format.h>

#include <charconv>
#include <chrono>
#include <cstdlib>

#include "common/errors.hpp"

namespace ganymede {
namespace {

namespace chrono = std::chrono;
using chrono::sys_days;
using chrono::year_month_day;

/// Reads `length` decimal digits from position `from` on; returns nothing if there are fewer or another character is
/// among them.
std::optional<int> parse_digits(std::string_view text, std::size_t from, std::size_t length) {
  if (from + length > text.size()) return std::nullopt;
  int value = 0;
  const char* end = text.data() + from + length;
  const auto [stop, error] = std::from_chars(text.data() + from, end, value);
  if (error != std::errc() || stop != end || value < 0) return std::nullopt;
  return value;
}

// Dates are parsed by hand, because g++ 12 has the calendar of <chrono> but not its parse().
std::optional<year_month_day> parse_date(std::string_view text) {
  if (text.size() != 10 || text[4] != '-' || text[7] != '-') return std::nullopt;
  const auto year = parse_digits(text, 0, 4), month = parse_digits(text, 5, 2), day = parse_digits(text, 8, 2);
  if (!year || !month || !day || *year < 1) return std::nullopt;
  const year_month_day date =
      chrono::year{*year} / chrono::month{static_cast<unsigned>(*month)} / chrono::day{static_cast<unsigned>(*day)};
  return date.ok() ? std::optional(date) : std::nullopt;
}

/// Reads a zone ("Z", "+01:00", "-05:30") as its lead over UTC, which is at most 14 hours and 59 minutes.
std::optional<chrono::minutes> parse_zone(std::string_view text) {
  if (text == "Z") return chrono::minutes{0};
  if (text.size() != 6 || (text[0] != '+' && text[0] != '-') || text[3] != ':') return std::nullopt;
  const auto hours = parse_digits(text, 1, 2), minutes = parse_digits(text, 4, 2);
  if (!hours || !minutes || *hours > 14 || *minutes > 59) return std::nullopt;
  const chrono::minutes ahead = chrono::hours{*hours} + chrono::minutes{*minutes};
  return text[0] == '-' ? -ahead : ahead;
}

}  // namespace

bool is_date(std::string_view text) { return parse_date(text).has_value(); }

int days_between(std::string_view from, std::string_view to) {
  return static_cast<int>((sys_days(*parse_date(to)) - sys_days(*parse_date(from))).count());
}

std::optional<std::int64_t> parse_time(std::string_view text) {
  if (text.size() < 17 || text[10] != 'T' || text[13] != ':') return std::nullopt;
  const auto date = parse_date(text.substr(0, 10));
  const auto hour = parse_digits(text, 11, 2), minute = parse_digits(text, 14, 2);
  std::optional<int> second = 0;
  std::size_t at = 16;
  if (text[at] == ':') {
    second = parse_digits(text, 17, 2);
    at = 19;
  }
  if (at >= text.size()) return std::nullopt;
  const auto zone = parse_zone(text.substr(at));
  if (!date || !hour || !minute || !second || !zone || *hour > 23 || *minute > 59 || *second > 59) return std::nullopt;
  const chrono::sys_seconds time =
      sys_days(*date) + chrono::hours{*hour} + chrono::minutes{*minute} + chrono::seconds{*second} - *zone;
  return time.time_since_epoch().count();
}

std::string format_time(std::int64_t seconds_since_1970) {
  const chrono::sys_seconds time{chrono::seconds{seconds_since_1970}};
  const sys_days day = chrono::floor<chrono::days>(time);
  const year_month_day date(day);
  const chrono::hh_mm_ss clock(time - day);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()), clock.hours().count(),
                     clock.minutes().count(), clock.seconds().count());
}

std::int64_t now() { return chrono::floor<chrono::seconds>(chrono::system_clock::now().time_since_epoch()).count(); }

std::int64_t stated_now() {
  const char* stated = std::getenv("GANYMEDE_NOW");
  if (stated == nullptr || *stated == '\0') return now();
  if (const auto time = parse_time(stated)) return *time;
  throw ConfigError(
      fmt::format("GANYMEDE_NOW: found \"{}\", expected a time with its zone, such as 2026-12-01T09:00:00Z", stated));
}

}  // namespace ganymede
