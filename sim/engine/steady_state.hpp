#pragma once
// Detects that a simulated collective repeats itself: its states at two moments differ only in the number of the round.

#include <cmath>
#include <cstdint>
#include <vector>

namespace ganymede::sim {

/// The largest difference of two states that count as the same, relative to the time between them. Even if differences
/// of all repetitions add up, the relative error of the time stays at this.
inline constexpr double kStateTolerance = 1e-10;

/// The state at a moment at which the first class of ranks, the lead, has just entered a round. Rounds are relative to
/// the lead's, and times to `time`.
struct StateSnapshot {
  double time = 0;                                    ///< seconds
  std::int64_t round = 0;                             ///< the round of the lead
  std::int64_t earliest_round = 0, latest_round = 0;  ///< over all classes
  std::vector<std::int64_t> exact;                    ///< values that must be equal
  std::vector<double> approximate;                    ///< times and bytes that must be nearly equal
  std::vector<double> unit_per_second;                ///< 1 for a time; a bandwidth for bytes
};

/// True if the later snapshot equals the earlier one except for time and round.
inline bool repeats(const StateSnapshot& earlier, const StateSnapshot& later) {
  const std::size_t values = earlier.approximate.size();
  if (earlier.exact != later.exact || values != later.approximate.size() || later.time <= earlier.time) return false;
  const double tolerance = kStateTolerance * (later.time - earlier.time);
  for (std::size_t i = 0; i < values; ++i)
    if (std::abs(earlier.approximate[i] - later.approximate[i]) > tolerance * earlier.unit_per_second[i]) return false;
  return true;
}

}  // namespace ganymede::sim
