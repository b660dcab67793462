#pragma once
// Step distributions and workloads that several runs share, and those of one scenario.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "calibration/workload_model.hpp"
#include "sim/scenario/scenario.hpp"
#include "sim/steps/step_distribution.hpp"

namespace ganymede::sim {

/// What a run needs to know of a workload besides its steps.
struct WorkloadSummary {
  double mean_s = 0;  ///< Mean step of one worker alone, in seconds.
  calibration::Provenance provenance = calibration::Provenance::measured;
  double relative_error = 0;
  std::string rule;  ///< How the workload was carried to the device, for messages.
  std::vector<std::string> warnings;
};

/// Distributions that do not depend on who asks for them: their key holds all that they depend on, and their random
/// numbers come from the key. Whoever simulates several runs (seeds, candidates of a plan, runs of a study) owns one
/// and passes it to each; results do not depend on it. Not for concurrent use: child processes fork a copy each, and
/// those that do several pieces of work keep what they learn.
class StepDistributionCache {
 public:
  using Distribution = std::shared_ptr<const StepDistribution>;
  using Workload = std::shared_ptr<const WorkloadSummary>;
  /// What is known under `key`, or what `make` returns, which is then kept. Nothing is kept if `make` throws.
  Distribution distribution(const std::string& key, const std::function<StepDistribution()>& make);
  Workload workload(const std::string& key, const std::function<WorkloadSummary()>& make);

 private:
  std::map<std::string, Distribution> distributions_;
  std::map<std::string, Workload> workloads_;
};

/// The step distributions of one scenario's configurations, by configuration.
class ScenarioSteps {
 public:
  /// Takes from `cache` what other runs have left there, and adds to it; message fidelity, which is asked for this very
  /// run, does neither. Both must outlive this.
  ScenarioSteps(const Scenario& scenario, StepDistributionCache& cache) : scenario_(scenario), cache_(&cache) {}
  /// `workload` stands instead of what the scenario's trace says: for checks that fit on a part of the trace. Both must
  /// outlive this.
  ScenarioSteps(const Scenario& scenario, const calibration::WorkloadModel& workload)
      : scenario_(scenario), given_(&workload) {}

  /// Simulates the configuration's steps on the first call. The reference lives as long as this.
  const StepDistribution& distribution(const Configuration& configuration);
  /// The workload of a worker of that pool in that stage. The reference lives as long as this.
  const WorkloadSummary& workload(std::size_t pool, std::size_t stage);

 private:
  calibration::WorkloadModel model(std::size_t pool, std::size_t stage) const;
  StepDistribution simulate(const Configuration& configuration, std::uint64_t seed) const;

  const Scenario& scenario_;
  StepDistributionCache* cache_ = nullptr;  // null: nothing is shared
  const calibration::WorkloadModel* given_ = nullptr;
  std::map<Configuration, StepDistributionCache::Distribution> distributions_;
  std::map<std::pair<std::size_t, std::size_t>, StepDistributionCache::Workload> workloads_;  // by pool and stage
};

}  // namespace ganymede::sim
