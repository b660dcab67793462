#pragma once
// The clock of a run: whole nanoseconds since the request for nodes, so that sums and comparisons of times are exact.

#include <cstdint>
#include <vector>

#include "common/units.hpp"

namespace ganymede::sim {

using Nanoseconds = std::int64_t;

/// Later than any event of a run.
inline constexpr Nanoseconds kNever = INT64_MAX;

/// Longest run in seconds, by the upper end of its interval too: the clock counts 292 years.
inline constexpr double kMaxRun_s = 9e9;

/// Rounds to the nearest nanosecond. Throws Failure if `time` is negative, not finite or longer than 292 years.
Nanoseconds to_nanoseconds(Seconds time);
Seconds to_seconds(Nanoseconds time);

// A run as it would have been if its training had taken longer or shorter. It gives the bill and the energy at the
// bounds of the run's time.

struct Span {
  Nanoseconds from = 0, to = 0;
};

/// Moves the moments of a run. Time in which something trains is stretched or shortened, so that all training together
/// takes `by` longer; all events move with it, losses of nodes included. Waits, pauses and boots keep their length. For
/// example, with training from 10 to 20 s and 5 s more, the moment 14 s moves to 16 s, 20 s to 25 s and 30 s to 35 s.
class Stretch {
 public:
  /// Leaves the run as it was.
  Stretch() = default;
  /// `trained`: when something trained, in ascending order. `by`: how much longer the run takes; negative if it is
  /// shorter. Training never becomes shorter than zero.
  Stretch(std::vector<Span> trained, Nanoseconds by);

  /// Returns the moment to which a moment of the run moves.
  Nanoseconds at(Nanoseconds moment) const;
  /// Returns the moment to which the start of an activity moves that keeps its length and is ready at `ready`, such as
  /// a boot.
  Nanoseconds start(Nanoseconds from, Nanoseconds ready) const { return at(ready) - (ready - from); }

 private:
  std::vector<Span> trained_;
  std::vector<Nanoseconds> before_{0};  // training before each span; the last entry is all of it
  Nanoseconds by_ = 0;
};

}  // namespace ganymede::sim
