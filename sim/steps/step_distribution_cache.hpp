#pragma once
// Step distributions and workloads: the cache that several runs share, and those of one scenario.

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
#include "sim/steps/site_communication.hpp"
#include "sim/steps/step_distribution.hpp"

namespace ganymede::sim {

/// Facts of a workload that a run needs in addition to its steps.
struct WorkloadSummary {
  double mean_s = 0;  ///< Mean step of one worker alone, in seconds.
  calibration::Provenance provenance = calibration::Provenance::measured;
  double relative_error = 0;
  std::string rule;  ///< How the workload was carried to the device, for messages.
  std::vector<std::string> warnings;
};

/// Distributions that do not depend on the run that asks for them: their key holds everything that they depend on, and
/// their random numbers come from the key. A caller that simulates several runs (seeds, candidates of a plan, runs of a
/// study) owns one cache and passes it to each run; results do not depend on it. Not thread-safe; each forked child
/// process has its own copy, and a child that does several tasks keeps what it has added, which it may also return.
class StepDistributionCache {
 public:
  using Distribution = std::shared_ptr<const StepDistribution>;
  using Workload = std::shared_ptr<const WorkloadSummary>;
  /// Returns the entry of `key`. If there is none, calls `make` and keeps its result; nothing is kept if `make` throws.
  Distribution distribution(const std::string& key, const std::function<StepDistribution()>& make);
  /// Returns the entry of `key`; null if there is none.
  Distribution find(const std::string& key) const;
  Workload workload(const std::string& key, const std::function<WorkloadSummary()>& make);
  /// Distributions that were added since the last call, for take_in() in another process.
  Json take_new();
  /// Adds what take_new() of another process has returned. Throws JsonError for anything else.
  void take_in(const Json& added);
  /// All-reduces that were simulated for distributions.
  ReductionCache& reductions() { return reductions_; }
  /// The models of the scenario's trace.
  calibration::KnownWorkloads& models(const Scenario& scenario) {
    return of_all_ ? *of_all_ : models_[scenario.workload_fingerprint];
  }
  /// All scenarios have the trace of these models, which must outlive this.
  void use_models(calibration::KnownWorkloads& of_all) { of_all_ = &of_all; }

 private:
  std::map<std::string, Distribution> distributions_;
  std::vector<std::string> new_;  // keys of distributions_ that take_new() has not returned
  std::map<std::string, Workload> workloads_;
  ReductionCache reductions_;
  std::map<std::string, calibration::KnownWorkloads> models_;  // by fingerprint
  calibration::KnownWorkloads* of_all_ = nullptr;              // null: models_
};

/// The step distributions of one scenario's configurations, by configuration.
class ScenarioSteps {
 public:
  /// Uses the entries that other runs have left in `cache`, and adds new ones. Distributions at message fidelity are
  /// neither taken from it nor added, because they belong to this run alone. Without `intervals` the interval of a mean
  /// step is perhaps only the mean, which takes a third of the time. Both arguments must outlive this.
  ScenarioSteps(const Scenario& scenario, StepDistributionCache& cache, bool intervals = true)
      : scenario_(scenario), cache_(&cache), intervals_(intervals) {}
  /// `workload` replaces the workload of the scenario's trace, for checks that fit it to a part of the trace. Both must
  /// outlive this.
  ScenarioSteps(const Scenario& scenario, const calibration::WorkloadModel& workload)
      : scenario_(scenario), given_(&workload) {}

  /// Simulates the configuration's steps on the first call. The reference is valid as long as this object.
  const StepDistribution& distribution(const Configuration& configuration);
  /// The workload of a worker of that pool in that stage. The reference is valid as long as this object.
  const WorkloadSummary& workload(std::size_t pool, std::size_t stage);
  /// By pool, empty where the configuration has no node: what StepSimulator needs.
  std::vector<calibration::WorkloadModel> models(const Configuration& configuration) const;

 private:
  calibration::WorkloadModel model(std::size_t pool, std::size_t stage) const;
  /// `known`: what this gave without the interval; null: nothing.
  StepDistribution simulate(const Configuration& configuration, std::uint64_t seed, bool interval = true,
                            const StepDistributionCache::Distribution& known = nullptr) const;

  const Scenario& scenario_;
  StepDistributionCache* cache_ = nullptr;  // null: nothing is shared
  bool intervals_ = true;
  const calibration::WorkloadModel* given_ = nullptr;
  std::map<Configuration, StepDistributionCache::Distribution> distributions_;
  std::map<std::pair<std::size_t, std::size_t>, StepDistributionCache::Workload> workloads_;  // by pool and stage
};

}  // namespace ganymede::sim
