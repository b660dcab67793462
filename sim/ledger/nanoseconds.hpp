#pragma once
// Times of the ledger and the bill: whole nanoseconds, so that sums are exact.

#include <cstdint>

#include "common/units.hpp"

namespace ganymede::sim {

inline constexpr double kNanosecondsPerSecond = 1e9;

/// Rounds to the nearest nanosecond. Throws Failure if `time` is negative, not finite, or longer than 64 bits hold (292
/// years).
std::int64_t whole_nanoseconds(Seconds time);

}  // namespace ganymede::sim
