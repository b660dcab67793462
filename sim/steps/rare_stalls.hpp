#pragma once
// The variation of a trace's steps in three parts: everyday jitter, whose steps are drawn; stalls so rare that a few
// hundred steps hold only some of them, which become events; and the tail beyond the trace's longest steps.

#include <cstddef>
#include <vector>

#include "calibration/step_model.hpp"
#include "common/random.hpp"

namespace ganymede::sim {

/// Stalls of one worker: each of `extra_s` came once in `steps` steps.
struct RareStalls {
  std::vector<double> extra_s;  ///< Seconds that each stall lasted, ascending.
  double steps = 1;             ///< Steps of the trace.

  /// Mean and mean square, in s and s², of the longest stall among `workers` workers over `per` steps.
  struct Moments {
    double mean = 0, square = 0;
  };
  Moments longest(std::size_t workers, double per = 1) const;
  /// Draws for how many seconds one worker's next step stalls; mostly 0.
  double draw(RandomStream& random) const;
};

/// Takes rare stalls out of the model and returns them: steps that exceed the median step by more than 10 robust
/// standard deviations (from the median absolute deviation) and last more than 1.5 times as long as it, if they are at
/// most 2 % of the trace. Each is replaced by the step before it; the stall is the difference between the two times.
RareStalls take_rare_stalls(calibration::StepModel& model);

/// The longest tenth of a trace's steps as a generalised Pareto distribution, fitted by probability-weighted moments
/// (Hosking & Wallis, Technometrics 29, 1987). It stands for steps longer than any recorded one: the slowest of 1,024
/// workers lies beyond what a trace of some hundred steps has seen.
struct JitterTail {
  double threshold_s = 0;
  double shape = 0, scale = 0;
  std::size_t base_row = 0;                   ///< The trace's step at the threshold.
  std::vector<bool> is_beyond;                ///< Whether each row is longer than the threshold.
  double beyond(RandomStream& random) const;  ///< Draws seconds above the threshold.
};

/// Fits the tail of the model's steps. Precondition: at least 50 samples.
JitterTail fit_tail(const calibration::StepModel& model);

}  // namespace ganymede::sim
