#include "sim/run/simulate.hpp"

#include "sim/run/run_result.hpp"
#include "sim/run/run_simulation.hpp"

namespace ganymede {

Result simulate(const Scenario& scenario) {
  StepTimes steps(scenario);
  return result_of(scenario, simulate_run(scenario, steps));
}

Result simulate(const Scenario& scenario, const WorkloadModel& workload) {
  StepTimes steps(scenario, &workload);
  return result_of(scenario, simulate_run(scenario, steps));
}

}  // namespace ganymede
