#include "sim/run/simulate.hpp"

#include "sim/run/run_result.hpp"
#include "sim/run/run_simulation.hpp"

namespace ganymede::sim {

Result simulate(const Scenario& scenario, StepDistributionCache& cache) {
  ScenarioSteps steps(scenario, cache);
  return result_of(scenario, simulate_run(scenario, steps));
}

Result simulate(const Scenario& scenario) {
  StepDistributionCache cache;
  return simulate(scenario, cache);
}

Result simulate(const Scenario& scenario, const calibration::WorkloadModel& workload) {
  ScenarioSteps steps(scenario, workload);
  return result_of(scenario, simulate_run(scenario, steps));
}

}  // namespace ganymede::sim
