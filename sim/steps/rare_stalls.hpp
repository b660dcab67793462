#pragma once
// What a trace's steps vary by, taken apart: the everyday jitter that is drawn from, stalls so rare that a few hundred
// steps hold only some (events, never draws), and the tail beyond the trace's length.

#include <cstddef>
#include <vector>

#include "calibration/step_model.hpp"
#include "common/random.hpp"

namespace ganymede {

/// Stalls of one worker: each of `extra_s` came once in `steps` steps.
struct RareStalls {
  std::vector<double> extra_s;  ///< ascending
  double steps = 1;

  /// Mean and mean square of the longest of `workers` workers' stalls in a step, or in `per` steps together.
  struct Moments {
    double mean = 0, square = 0;
  };
  Moments longest(std::size_t workers, double per = 1) const;
  /// What one worker's next step stalls: mostly 0.
  double draw(RandomStream& random) const;
};

/// Takes steps out that last more than 10 robust standard deviations (of the median's absolute deviation) longer than
/// the median and half as long again as it, if they are at most 2 % of the trace: each is replaced by the step before
/// it, and what it lasted longer is returned.
RareStalls take_rare_stalls(StepModel& model);

/// Steps longer than nine in ten of a trace, as a generalised Pareto distribution (by probability-weighted moments,
/// Hosking & Wallis, Technometrics 29, 1987). The slowest of 1,024 workers lies beyond what a trace of some hundred
/// steps has seen.
struct JitterTail {
  double threshold_s = 0;
  double shape = 0, scale = 0;
  std::size_t base_row = 0;                   ///< the trace's step at the threshold
  std::vector<bool> is_beyond;                ///< by row
  double beyond(RandomStream& random) const;  ///< seconds above the threshold
};

/// Precondition: at least 50 samples.
JitterTail fit_tail(const StepModel& model);

}  // namespace ganymede
