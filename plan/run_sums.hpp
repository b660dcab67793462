#pragma once
// What the runs of a candidate add up to.

#include <string>
#include <vector>

#include "plan/chances.hpp"
#include "plan/outcome.hpp"
#include "plan/request.hpp"
#include "sim/run/result.hpp"

namespace ganymede::plan {

/// One quantity of the runs that finish, with the ends of its intervals.
struct SeedValues {
  std::vector<double> values, lows, highs;
  void add(double value, double low, double high) {
    values.push_back(value);
    lows.push_back(low);
    highs.push_back(high);
  }
  PlanMeasure measure() const;
};

/// Sums over the runs of a candidate.
struct RunSums {
  SeedValues time, usd, usd_at_worst, kg;
  std::vector<Uncertain> costs;  ///< with doubtful prices at their highest values
  // Only if an FID is the goal, because the runs then differ in their images, and outcomes of all runs are one spread:
  std::vector<Uncertain> times_s, all_usd;  ///< the second with what doubtful prices may be
  std::vector<double> images;
  double busy = 0, losses = 0, lost_s = 0, trained_s = 0, checkpoints = 0, images_per_s = 0;
  double met = 0, chance = 0;  ///< sums of what each run has of meeting the goals, from 0 to 1
  int runs = 0, finished = 0;
  bool carbon = true;
  std::string risk;
  std::string inputs;                 ///< of the first run that finishes
  std::vector<std::string> warnings;  ///< of the same

  void add(const Request& request, const sim::Scenario& scenario, const sim::Result& run);
  PlannedRun planned() const;
};

}  // namespace ganymede::plan
