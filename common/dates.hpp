#pragma once
// Calendar dates and times as text.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ganymede {

/// True if the text is YYYY-MM-DD and that day exists: "2024-02-29" is a date, "2023-02-29" is not.
bool is_date(std::string_view text);

/// Days from one date to another, negative if `to` is earlier. Both texts must satisfy is_date.
int days_between(std::string_view from, std::string_view to);

/// Reads "2026-12-01T18:00:00+01:00" or "2026-12-01T17:00:00Z" and returns seconds since 1970-01-01T00:00:00Z. The
/// seconds may be left out ("18:00+01:00"), the zone must not. Returns nothing for any other text.
std::optional<std::int64_t> parse_time(std::string_view text);

/// Reads a time as other programs write it: a number of seconds, or of milli-, micro- or nanoseconds if it is too large
/// for them; "2026-11-03T08:15:00.5+0100", "2026/11/03 08:15:00,500", "Tue Nov  3 08:15:00 2026", "3 Nov 2026
/// 08:15:00". Without a zone it is UTC. Without a year, as in "Nov 03 08:15:00", the year is 1972, so that only
/// differences mean anything. Returns seconds since 1970, or nothing for any other text.
std::optional<double> moment_of(std::string_view text);

/// Seconds of a number of seconds, or of milli-, micro- or nanoseconds if it is too large for seconds since 1970.
double seconds_of_stamp(double number);

/// Writes seconds since 1970-01-01T00:00:00Z as a time in UTC: "2026-12-01T17:00:00Z". Later ones are the end of the
/// year 9999.
std::string format_time(std::int64_t seconds_since_1970);

/// The system's clock in seconds since 1970-01-01T00:00:00Z, for logs and waiting.
std::int64_t now();

/// When results are asked for, in seconds since 1970-01-01T00:00:00Z: the time that the environment variable
/// GANYMEDE_NOW states (see parse_time), else the system's clock. Call it only where a user asks for "now" or "today",
/// and record what it says in the result, because results must not depend on when they are computed. Throws ConfigError
/// if the variable states no time.
std::int64_t stated_now();

}  // namespace ganymede
