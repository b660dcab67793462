#pragma once
// A run as it would have been if its training had taken longer or shorter: for its bill and its energy at the bounds of
// its time.

#include <vector>

#include "sim/run/run_clock.hpp"

namespace ganymede::sim {

struct Span {
  Nanoseconds from = 0, to = 0;
};

/// Moves the moments of a run. While something trains the clock goes faster or slower, so that all training together
/// takes `by` longer; everything that happens moves with it, losses of nodes included. Waits, pauses and boots keep
/// their length. For example, with training from 10 to 20 s and 5 s more, the moment 14 s moves to 16 s, 20 s to 25 s
/// and 30 s to 35 s.
class Stretch {
 public:
  /// Leaves the run as it was.
  Stretch() = default;
  /// `trained`: when something trained, in ascending order. `by`: how much longer the run takes; negative if it is
  /// shorter. Training never takes less than no time.
  Stretch(std::vector<Span> trained, Nanoseconds by);

  /// Where a moment of the run moves to.
  Nanoseconds at(Nanoseconds moment) const;
  /// Where the start of something moves to that is ready at a later moment and keeps its length, such as a boot.
  Nanoseconds start(Nanoseconds from, Nanoseconds ready) const { return at(ready) - (ready - from); }

 private:
  std::vector<Span> trained_;
  std::vector<Nanoseconds> before_{0};  // training before each span; the last entry is all of it
  Nanoseconds by_ = 0;
};

}  // namespace ganymede::sim
