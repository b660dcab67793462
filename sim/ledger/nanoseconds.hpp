#pragma once
// Times as the ledger and the bill take them: in whole nanoseconds, so that sums are exact.

#include <cstdint>

#include "common/units.hpp"

namespace ganymede {

inline constexpr double kNanosecondsPerSecond = 1e9;

/// To the nearest. Failure if negative, not finite, or more than 64 bits hold (292 years).
std::int64_t whole_nanoseconds(Seconds time);

}  // namespace ganymede
