#pragma once
// Sums over simulated steps, by pool, and the mean step that follows from them.

#include <cstddef>
#include <vector>

#include "common/units.hpp"
#include "sim/steps/step_distribution.hpp"
#include "sim/steps/step_process.hpp"

namespace ganymede::sim {

class StepSums {
 public:
  /// `pool_of`: the pool of each worker. `slowest`: for each pool, the work time of the slowest worker divided by that
  /// of the mean worker; steps are simulated as if all workers took the slowest one's time.
  StepSums(std::vector<std::size_t> pool_of, std::vector<double> slowest);

  /// Adds a step, counted `times` times.
  void add(const StepOutcome& step, double times = 1);
  /// Sets `mean` and `pools` of a distribution from the sums over `steps` steps. The time by which the slowest worker
  /// computes longer than the mean one counts as waiting for stragglers.
  void write_mean_step(double steps, StepDistribution& out) const;

 private:
  std::vector<std::size_t> pool_of_;
  std::vector<double> slowest_;
  Seconds total_;
  std::vector<PoolStep> pools_;
};

}  // namespace ganymede::sim
