#include "common/dates.hpp"

#include <fmt/format.h>

#include <charconv>
#include <chrono>

namespace ganymede {
namespace {

using std::chrono::sys_days;
using std::chrono::year_month_day;

/// The digits there as a number; none if there are others.
std::optional<int> digits(std::string_view text, std::size_t from, std::size_t length) {
  if (from + length > text.size()) return std::nullopt;
  int value = 0;
  const char* end = text.data() + from + length;
  const auto [stop, error] = std::from_chars(text.data() + from, end, value);
  if (error != std::errc() || stop != end || value < 0) return std::nullopt;
  return value;
}

std::optional<year_month_day> parse_date(std::string_view text) {
  if (text.size() != 10 || text[4] != '-' || text[7] != '-') return std::nullopt;
  const auto year = digits(text, 0, 4), month = digits(text, 5, 2), day = digits(text, 8, 2);
  if (!year || !month || !day || *year < 1) return std::nullopt;
  const year_month_day date = std::chrono::year{*year} / std::chrono::month{static_cast<unsigned>(*month)} /
                              std::chrono::day{static_cast<unsigned>(*day)};
  return date.ok() ? std::optional(date) : std::nullopt;
}

/// "Z", "+01:00" or "-05:30" in seconds.
std::optional<int> parse_zone(std::string_view text) {
  if (text == "Z") return 0;
  if (text.size() != 6 || (text[0] != '+' && text[0] != '-') || text[3] != ':') return std::nullopt;
  const auto hours = digits(text, 1, 2), minutes = digits(text, 4, 2);
  if (!hours || !minutes || *hours > 14 || *minutes > 59) return std::nullopt;
  return (text[0] == '-' ? -1 : 1) * (*hours * 3600 + *minutes * 60);
}

}  // namespace

bool is_date(std::string_view text) { return parse_date(text).has_value(); }

int days_between(std::string_view from, std::string_view to) {
  return static_cast<int>((sys_days(*parse_date(to)) - sys_days(*parse_date(from))).count());
}

std::optional<std::int64_t> parse_time(std::string_view text) {
  if (text.size() < 17 || text[10] != 'T' || text[13] != ':') return std::nullopt;
  const auto date = parse_date(text.substr(0, 10));
  const auto hour = digits(text, 11, 2), minute = digits(text, 14, 2);
  std::optional<int> second = 0;
  std::size_t at = 16;
  if (text[at] == ':') {
    second = digits(text, 17, 2);
    at = 19;
  }
  if (at >= text.size()) return std::nullopt;
  const auto zone = parse_zone(text.substr(at));
  if (!date || !hour || !minute || !second || !zone || *hour > 23 || *minute > 59 || *second > 59) return std::nullopt;
  return std::int64_t{sys_days(*date).time_since_epoch().count()} * 86400 + std::int64_t{*hour} * 3600 +
         std::int64_t{*minute} * 60 + *second - *zone;
}

std::string format_time(std::int64_t seconds_since_1970) {
  const std::chrono::sys_seconds time{std::chrono::seconds{seconds_since_1970}};
  const sys_days day = std::chrono::floor<std::chrono::days>(time);
  const year_month_day date(day);
  const std::chrono::hh_mm_ss clock(time - day);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()), clock.hours().count(),
                     clock.minutes().count(), clock.seconds().count());
}

std::int64_t now() {
  return std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace ganymede
