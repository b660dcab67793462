#pragma once
// When a simulated collective does the same again: states of different moments that differ in their round alone.

#include <cmath>
#include <cstdint>
#include <vector>

namespace ganymede {

/// What tells two states apart, as a share of the time between them. It may add up over all repetitions, which leaves
/// the sum as exact as this.
inline constexpr double kSameState = 1e-10;
/// The state at a moment at which the first class has just entered a round: integers that must be equal, and times and
/// bytes that must nearly be.
struct RepeatableState {
  double time = 0;
  std::int64_t round = 0, first = 0, last = 0;  ///< of the lead; of all classes
  std::vector<std::int64_t> exact;
  std::vector<double> near;
  std::vector<double> scale;  ///< what one second is in the unit of `near`
};

inline bool alike(const RepeatableState& a, const RepeatableState& b) {
  if (a.exact != b.exact || a.near.size() != b.near.size() || b.time <= a.time) return false;
  const double tolerance = kSameState * (b.time - a.time);
  for (std::size_t i = 0; i < a.near.size(); ++i)
    if (std::abs(a.near[i] - b.near[i]) > tolerance * a.scale[i]) return false;
  return true;
}

}  // namespace ganymede
