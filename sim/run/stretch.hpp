#pragma once
// A run that takes longer, or shorter, than it did: what its bill would have been at the bounds of its time.

#include <vector>

#include "sim/run/run_clock.hpp"

namespace ganymede {

struct Span {
  Nanoseconds from = 0, to = 0;
};

/// The bounds of a run's time say that its training may take longer or shorter. So the clock goes on faster or slower,
/// in proportion, while something trains, and everything that happens then moves with it, whether a node was kept to
/// the end or lost before. Waits and pauses keep their length, and so do boots.
class Stretch {
 public:
  /// As it was.
  Stretch() = default;
  /// `trained`: when something trained, in order; `by`: how much longer the run takes, shorter if negative. No training
  /// takes less than nothing.
  Stretch(std::vector<Span> trained, Nanoseconds by);

  /// Where a moment of the run comes to lie.
  Nanoseconds at(Nanoseconds moment) const;
  /// Where the start of something comes to lie that is ready at a later moment, and whose length until then stays.
  Nanoseconds start(Nanoseconds from, Nanoseconds ready) const { return at(ready) - (ready - from); }

 private:
  std::vector<Span> trained_;
  std::vector<Nanoseconds> before_{0};  // training before each span, and all of it
  Nanoseconds by_ = 0;
};

}  // namespace ganymede
