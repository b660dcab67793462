#pragma once
// When a training under way will end, from what its log says so far and from what was planned.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "plan/planner.hpp"
#include "plan/run_log.hpp"

namespace ganymede::plan {

/// What was known before the run: seconds a step, pauses included, as a median with an interval of 90 %.
struct StepPrior {
  PlanMeasure seconds;
};

/// A stage of a growing model, whose steps take longer as the images get larger.
struct StageWork {
  double share = 0;   ///< of the run's steps; all stages sum to 1
  double step_s = 0;  ///< seconds a step by the plan, of which only the ratios between stages count
};

/// A pause that is planned again and again.
struct PlannedPause {
  double every = 0;    ///< steps from one to the next
  double seconds = 0;  ///< of one; 0: it is not known
};

/// By the names that logs give them.
using PlannedPauses = std::map<std::string, PlannedPause>;

/// Times in seconds since the log began.
struct RunForecast {
  double done_share = 0;     ///< of the planned steps
  double elapsed_s = 0;      ///< until the log's last line
  double paused_s = 0;       ///< of these, in pauses and interruptions
  double step_s = 0;         ///< seconds a step of those left, pauses left out; before the second line the prior's
  bool observed = false;     ///< false: nothing but the prior is known yet
  double pause_s = 0;        ///< seconds of a step's share in the pauses that recur
  PlanMeasure total_s;       ///< from the log's begin to the run's end; the interval holds in 90 % of runs
  double pauses_left_s = 0;  ///< of the forecast, in pauses to come
  /// Names of pauses that were made once and for which no period is known: none to come is in the forecast.
  std::vector<std::string> lone_pauses;

  /// Probability that the run ends within `seconds` of the log's begin.
  double chance_within(double seconds) const;
};

/// Extrapolates the rest of a run: the steps left at the observed pace (pace.hpp) without pauses, and pauses that recur
/// after the same number of steps: two of a name tell how many, and of a single one `planned` does, if it knows.
/// Planned pauses of which none was due yet come as planned. The pace is averaged with the prior's by their precisions,
/// so that the prior counts for seconds of a log, not for hours. The interval does not come from the scatter of the
/// steps, which says nothing about restarts and slow phases to come, but from how far 32 recorded trainings were off
/// (forecast.cpp). A run with `stages` is at the plan's pace of the stage that it is in, relative to those that it was
/// in.
RunForecast forecast(const RunLog& log, const std::optional<StepPrior>& prior,
                     const std::vector<StageWork>& stages = {}, const PlannedPauses& planned = {});

}  // namespace ganymede::plan
