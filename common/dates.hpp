#pragma once
// Days and times of the calendar, as texts.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ganymede {

/// YYYY-MM-DD, a day of the calendar.
bool is_date(std::string_view text);

/// Days from one date to another; both satisfy is_date.
int days_between(std::string_view from, std::string_view to);

/// "2026-12-01T18:00:00+01:00" or "…Z" as seconds since 1970-01-01T00:00:00Z; ":00" of seconds may be left out. None if
/// it is not one: a time without its zone is not.
std::optional<std::int64_t> parse_time(std::string_view text);

/// "2026-12-01T17:00:00Z"
std::string format_time(std::int64_t seconds_since_1970);

/// By the system's clock, UTC. Only where a user asked for "now": results must not depend on it otherwise.
std::int64_t now();

}  // namespace ganymede
