#pragma once
// The clock of a run: whole nanoseconds since the request for nodes, so that sums and comparisons of times are exact.

#include <cstdint>

#include "common/units.hpp"

namespace ganymede::sim {

using Nanoseconds = std::int64_t;

/// Later than any event of a run.
inline constexpr Nanoseconds kNever = INT64_MAX;

/// Rounds to the nearest nanosecond. Throws Failure if `time` is negative, not finite or longer than 292 years.
Nanoseconds to_nanoseconds(Seconds time);
Seconds to_seconds(Nanoseconds time);

}  // namespace ganymede::sim
