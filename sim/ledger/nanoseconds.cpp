#include "sim/ledger/nanoseconds.hpp"

#include <fmt/format.h>

#include <cmath>

#include "common/errors.hpp"
#include "common/units.hpp"

namespace ganymede::sim {

std::int64_t whole_nanoseconds(Seconds time) {
  constexpr double kMaxNanoseconds = 9.2e18;  // just below 2^63
  const double nanoseconds = time.si * kNanosecondsPerSecond;
  if (!(0 <= nanoseconds && nanoseconds <= kMaxNanoseconds)) {
    throw Failure(fmt::format("cannot account for {} s: expected zero or more, and at most 292 years", time.si));
  }
  return std::llround(nanoseconds);
}

}  // namespace ganymede::sim
