#pragma once
// A training under way beside the plan that it follows: time, bill, deadline, and what its policy would do now.

#include <optional>

#include "calibration/quality/goal.hpp"
#include "documents/forecast.hpp"
#include "plan/planner.hpp"
#include "plan/run_log.hpp"
#include "sim/scenario/scenario.hpp"

namespace ganymede::plan {

/// The chosen candidate of a plan, as far as a run is compared with it.
struct WatchedPlan {
  std::string file, model, instance, gpu, policy;
  int nodes = 1, gpus = 1;
  std::int64_t batch = 0;                           ///< images of one step over all GPUs
  double usd_per_hour = 0;                          ///< of all nodes
  PlanMeasure time_s, usd;                          ///< from the request to the end
  double least_s = 0;                               ///< lower bound of the time from the request
  double images_per_s = 0;                          ///< while it trains; 0: an older plan does not say
  PlanMeasure step_s;                               ///< of one GPU by itself; 0: an older plan does not say
  bool at_risk = false;                             ///< its nodes may be taken back
  double certainty = 0;                             ///< share of runs that were to meet the goals
  sim::Scenario scenario;                           ///< of the chosen candidate
  std::optional<calibration::QualityGoal> quality;  ///< the FID that the plan is for, if it is for one
};

/// What the plan knows of a training whose log does not say it.
PlannedTraining planned_training(const WatchedPlan& plan);

/// Throws ConfigError if the file is no plan, or one that has chosen nothing.
WatchedPlan load_watched_plan(const std::filesystem::path& file);

/// The run beside its plan. Throws ConfigError if the log is of another model than the plan.
documents::Forecast watched(const WatchedPlan& plan, const RunLog& log, const std::string& log_file);

/// True if the run misses its deadline, or is less sure to meet it than the plan asked for.
bool endangers_deadline(const documents::Forecast& forecast);

/// Seconds since the last line of a run that has not ended, if it has written nothing for a minute and for 20 times its
/// usual time between two steps: it may be dead. `now_unix_s` is Unix time in seconds.
std::optional<double> silent_seconds(const RunLog& log, double now_unix_s);

}  // namespace ganymede::plan
