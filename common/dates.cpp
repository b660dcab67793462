#include "common/dates.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdlib>

#include "common/errors.hpp"
#include "common/plain_text.hpp"

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

/// Reads a zone ("Z", "UTC", "+01", "+0100", "-05:30") as its lead over UTC, which is at most 14 hours and 59 minutes.
std::optional<chrono::minutes> parse_zone(std::string_view text) {
  if (text == "Z" || text == "UTC" || text == "GMT") return chrono::minutes{0};
  const bool fits = text.size() == 3 || text.size() == 5 || (text.size() == 6 && text[3] == ':');
  if (!fits || (text[0] != '+' && text[0] != '-')) return std::nullopt;
  const auto hours = parse_digits(text, 1, 2);
  const auto minutes = text.size() == 3 ? std::optional(0) : parse_digits(text, text.size() - 2, 2);
  if (!hours || !minutes || *hours > 14 || *minutes > 59) return std::nullopt;
  const chrono::minutes ahead = chrono::hours{*hours} + chrono::minutes{*minutes};
  return text[0] == '-' ? -ahead : ahead;
}

constexpr double kLatest = 253402300800.0;  // seconds from 1970 to the end of the year 9999

/// "2020/4/1" as "2020-04-01", and "8:15:00.5" as "08:15:00.5": numbers of one digit get a second.
std::string padded(std::string_view text) {
  const auto is_digit = [&](std::size_t at) { return at < text.size() && text[at] >= '0' && text[at] <= '9'; };
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool part = i > 0 && (is_digit(i - 1) || text[i - 1] == '.' || text[i - 1] == ',');
    if (is_digit(i) && !part && !is_digit(i + 1)) out += '0';
    out += text[i] == '/' ? '-' : text[i];
  }
  return out;
}

/// Seconds of "08:15:00.25 +0100" before midnight in UTC is taken off, or nothing.
std::optional<double> parse_clock(std::string_view text) {
  const auto hour = parse_digits(text, 0, 2), minute = parse_digits(text, 3, 2), second = parse_digits(text, 6, 2);
  if (!hour || !minute || !second || text[2] != ':' || text[5] != ':' || *hour > 23 || *minute > 59 || *second > 60)
    return std::nullopt;
  double seconds = *hour * 3600.0 + *minute * 60.0 + *second, unit = 0.1;
  std::size_t at = 8;
  if (at < text.size() && (text[at] == '.' || text[at] == ','))
    for (++at; at < text.size() && text[at] >= '0' && text[at] <= '9'; ++at, unit /= 10)
      seconds += unit * (text[at] - '0');
  while (at < text.size() && text[at] == ' ') ++at;
  const auto zone = at == text.size() ? chrono::minutes{0} : parse_zone(text.substr(at));
  return zone ? std::optional(seconds - 60.0 * static_cast<double>(zone->count())) : std::nullopt;
}

double at_midnight(year_month_day date) { return chrono::duration<double>(sys_days(date).time_since_epoch()).count(); }

/// The parts of a time in words; none is said twice, so that what a line of a log says behind its time is no part of
/// it.
struct TimeInWords {
  std::optional<int> weekday, year, month, day;  ///< counted from 1
  std::optional<double> clock;
  bool behind = false;  ///< the date is behind the clock
  bool ctime = false;   ///< only the year is, as ctime writes it: the weekday must be its

  /// Returns false if the word is no part, or one that is there.
  bool take(std::string_view word) {
    constexpr std::string_view kMonths = "JanFebMarAprMayJunJulAugSepOctNovDec", kDays = "MonTueWedThuFriSatSun";
    const auto place = [&](std::string_view names) {  // of the name among those of three letters
      const std::size_t at = word.size() == 3 ? names.find(word) : names.npos;
      return at != names.npos && at % 3 == 0 ? std::optional(static_cast<int>(at / 3) + 1) : std::nullopt;
    };
    const auto set = [](auto& part, auto value) {
      const bool is_first = !part;
      part = value;
      return is_first && value;
    };
    if (word.empty() || word == "UTC") return true;
    if (const auto name = place(kDays)) return set(weekday, name);
    if (const auto name = place(kMonths)) return set(month, name);
    if (word.size() >= 8 && word[2] == ':') return set(clock, parse_clock(word));
    const auto number = parse_digits(word, 0, word.size());
    if (word.size() <= 2) {
      behind = clock.has_value();
      return !(clock && month) && set(day, number);
    }
    ctime = clock && !behind;
    return word.size() == 4 && (!ctime || weekday) && set(year, number);
  }

  std::optional<double> moment() const {
    const year_month_day date = chrono::year{year.value_or(1972)} /
                                chrono::month{static_cast<unsigned>(month.value_or(0))} /
                                chrono::day{static_cast<unsigned>(day.value_or(0))};
    if (!date.ok() || !clock) return std::nullopt;
    if (ctime && chrono::weekday(sys_days(date)).iso_encoding() != static_cast<unsigned>(*weekday)) return std::nullopt;
    return at_midnight(date) + *clock;
  }
};

/// Reads "Tue Nov  3 08:15:00 2026" and the like.
std::optional<double> parse_words(std::string_view text) {
  TimeInWords time;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find_first_of(" ,"));
    text.remove_prefix(std::min(word.size() + 1, text.size()));
    if (!time.take(word)) return std::nullopt;
  }
  return time.moment();
}

}  // namespace

double seconds_of_stamp(double number) {
  for (int thousands = 0; thousands < 3 && number > kLatest; ++thousands) number /= 1000;
  return number;
}

std::optional<double> moment_of(std::string_view text) {
  if (const auto number = parse_number<double>(text)) {
    const double seconds = seconds_of_stamp(*number);
    return seconds >= 0 && seconds <= kLatest ? std::optional(seconds) : std::nullopt;
  }
  const std::size_t gap = std::min(text.find_first_of("T "), text.size());
  const auto date = parse_date(padded(text.substr(0, gap)));
  if (!date) return parse_words(text);
  std::string clock = padded(text.substr(std::min(gap + 1, text.size())));
  if (clock.size() == 5 || (clock.size() > 5 && std::string_view("+-Z ").find(clock[5]) != std::string_view::npos))
    clock.insert(5, ":00");  // "08:15+01:00"
  const auto seconds = parse_clock(clock);
  return seconds ? std::optional(at_midnight(*date) + *seconds) : std::nullopt;
}

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
  const chrono::sys_seconds time{chrono::seconds{std::min(seconds_since_1970, static_cast<std::int64_t>(kLatest) - 1)}};
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
