#pragma once
// How long the steps left of a training will take, from those that its log has.

#include <vector>

namespace ganymede::plan {

/// Training between two lines of a log, without the pauses in it. Steps count from the log's begin.
struct Stretch {
  double from = 0, to = 0;  ///< steps done before and after it
  double seconds = 0;
};

struct Pace {
  double step_s = 0;  ///< seconds a step, on average over the steps left
  double log_sd = 0;  ///< standard deviation of the logarithm of step_s; infinite for a single stretch
};

/// The pace over the next `left` steps after `stretches`, of which there is at least one, in order and not all of no
/// time. A stop that did not recur is no pace. If the pace has changed for good, only what came after the change
/// counts. A pace that drifts with the logarithm of the steps, as warm caches and augmentation that adapts make it,
/// drifts on.
Pace pace(const std::vector<Stretch>& stretches, double left);

}  // namespace ganymede::plan
