#pragma once
// Simulates the steps of one configuration: what step_distribution.hpp keeps.

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "sim/steps/communication.hpp"
#include "sim/steps/rare_stalls.hpp"
#include "sim/steps/step_distribution.hpp"
#include "sim/steps/step_process.hpp"
#include "sim/steps/worker_models.hpp"

namespace ganymede {

/// Everything that one simulation of a configuration needs.
class Workbench {
 public:
  Workbench(const Scenario& scenario, const Configuration& configuration, const std::vector<WorkloadModel>& workloads,
            std::uint64_t seed)
      : scenario_(scenario),
        configuration_(configuration),
        workloads_(workloads),
        seed_(seed),
        crew_(crew_of(scenario, configuration)),
        message_(scenario.fidelity == Fidelity::message) {
    const StepModel& model = workloads[crew_.pool_of.front()].central;
    jitter_ = std::any_of(crew_.pool_of.begin(), crew_.pool_of.end(),
                          [&](std::size_t pool) { return workloads[pool].central.samples > 1; });
    if (crew_.pool_of.size() > 1 || scenario.servers.nodes > 0) connect(model);
  }

  StepDistribution measure(Bound bound);

 private:
  void connect(const StepModel& model);
  std::vector<const StepModel*> by_worker() const;
  std::unique_ptr<StepProcess> process();
  void repeat_steps(StepProcess& process, StepDistribution& out);
  void sample_steps(StepProcess& process, StepDistribution& out);
  void add_stalls(StepDistribution& out);
  void show_steps(StepProcess& process, StepDistribution& out, std::span<const std::size_t> rows);
  void add(const StepOutcome& step, double times = 1);
  void settle(StepDistribution& out, double counted);
  double slowest_factor(const WorkloadModel& workload, Bound bound) const;
  void warn(StepDistribution& out) const;
  Topology topology() const;

  const Scenario& scenario_;
  const Configuration& configuration_;
  const std::vector<WorkloadModel>& workloads_;
  std::uint64_t seed_;
  Crew crew_;
  bool message_, jitter_ = false;
  std::unique_ptr<Communication> communication_;
  std::optional<ServerRoutes> servers_;  // asynchronous

  // Of the bound that is being measured.
  WorkerModels models_;
  std::vector<StepModel> slow_models_;  // by pool; where some workers are slower
  std::vector<double> slowest_;         // by pool: how much longer the slowest worker takes than the mean one
  RareStalls stalls_;
  std::optional<JitterTail> tail_;
  Seconds total_;
  std::vector<PoolStep> sums_;
};

}  // namespace ganymede
