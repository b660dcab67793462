#include "sim/run/simulate.hpp"

#include <algorithm>

#include "common/errors.hpp"
#include "sim/run/run_result.hpp"

namespace ganymede::sim {

Result simulate(const Scenario& scenario, StepDistributionCache& cache, bool intervals) {
  ScenarioSteps steps(scenario, cache, intervals);
  return result_of(scenario, simulate_run(scenario, steps));
}

std::optional<Result> simulate_unless(const GivesUp& gives_up, const Scenario& scenario, StepDistributionCache& cache) {
  ScenarioSteps steps(scenario, cache, /*intervals=*/false);
  const auto controller = make_controller(scenario);
  const auto record = RunSimulation(scenario, steps, *controller).run(gives_up);
  return record ? std::optional(result_of(scenario, *record)) : std::nullopt;
}

Result simulate(const Scenario& scenario) {
  StepDistributionCache cache;
  return simulate(scenario, cache);
}

Result simulate(const Scenario& scenario, const calibration::WorkloadModel& workload) {
  ScenarioSteps steps(scenario, workload);
  return result_of(scenario, simulate_run(scenario, steps));
}

bool has_chances(const Scenario& scenario) {
  const Faults& faults = scenario.faults;
  return faults.crash || faults.straggler || faults.network || faults.storage ||
         std::any_of(scenario.pools.begin(), scenario.pools.end(),
                     [](const ScenarioPool& pool) { return is_modelled(pool.spot) || pool.lifetimes; });
}

int default_seeds(const Scenario& scenario) {
  return has_chances(scenario) && scenario.fidelity == Fidelity::sampled ? 20 : 1;
}

Result simulate_seeds(const Scenario& scenario, int count) {
  StepDistributionCache cache;
  Result asked = simulate(scenario, cache);
  if (count < 2) return asked;
  SeedRuns all;
  all.first = scenario.seed;
  all.count = count;
  std::vector<double> time, time_low, time_high, usd, usd_low, usd_high;
  double losses = 0;
  const auto take = [&](const Result& run) {
    ++all.finished;
    all.met += run.met ? 1 : 0;
    losses += static_cast<double>(run.losses);
    time.push_back(run.total.si);
    time_low.push_back(run.interval_s.low);
    time_high.push_back(run.interval_s.high);
    usd.push_back(static_cast<double>(run.bill.total().value) / 1e6);
    usd_low.push_back(run.cost_usd.low);
    usd_high.push_back(run.cost_usd.high);
  };
  take(asked);
  for (int i = 1; i < count; ++i) {
    Scenario other = with_seed(scenario, scenario.seed + static_cast<std::uint64_t>(i));
    other.shown_steps = 0;
    try {
      take(simulate(other, cache));
    } catch (const Infeasible&) {  // counted as not finished
    }
  }
  all.time_s = seed_quantiles(time, time_low, time_high);
  all.usd = seed_quantiles(usd, usd_low, usd_high);
  all.losses_mean = losses / all.finished;
  asked.seeds = all;
  return asked;
}

}  // namespace ganymede::sim
