#pragma once
// The steps of one configuration are draws of one distribution: simulated once, then reused by every event, seed and
// run that comes to that configuration.

#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "calibration/workload_model.hpp"
#include "sim/scenario/scenario.hpp"
#include "sim/steps/step_process.hpp"

namespace ganymede {

/// What trains, and under which conditions.
struct Configuration {
  std::vector<int> nodes;  ///< by pool
  std::size_t stage = 0;
  bool cached = true;               ///< the dataset comes from the cache, not from storage
  bool burst = false;               ///< storage gives more than its baseline while credits last
  double network = 1, storage = 1;  ///< share of their rates
  int slow = 0;                     ///< workers that take `slow_factor` times as long
  double slow_factor = 1;
  double cpus = 1;    ///< share of the vCPUs that the job may use
  double memory = 1;  ///< of the host's memory; the steps know it only by `cached`
  auto operator<=>(const Configuration&) const = default;
};

/// Worker-seconds of a mean step, of the workers of one pool. All but `device` sum to workers x step.
struct PoolStep {
  Seconds compute, exposed, straggler, stall, lost, device;
};

struct StepDistribution {
  Seconds mean;
  Seconds low, high;        ///< mean steps of the bounds where the workload is transferred
  double half_width = 0;    ///< 95 %, relative, of `mean` from simulating a sample only
  double own_variance = 0;  ///< s²: n steps of a run vary by n times this around n times the mean
  std::int64_t simulated = 0;
  bool precise = true;   ///< the precision that was asked for was reached
  double staleness = 0;  ///< asynchronous: updates by others between reading and updating
  std::vector<PoolStep> pools;
  Seconds busiest_link;  ///< a step
  Bytes between_sites;   ///< a step
  Seconds host;          ///< host seconds of all workers a step
  double reads = 0;      ///< requests to storage a step
  double flops = 0;      ///< of all workers a step
  int workers = 0;
  double images = 0;            ///< a step
  std::vector<StepSpan> spans;  ///< of so many steps as the scenario shows, from the first one's start
  std::vector<std::string> warnings;
};

/// What a run needs to know of a workload besides its steps.
struct KnownWorkload {
  double mean_s = 0;  ///< of one worker alone
  Provenance provenance = Provenance::measured;
  double relative_error = 0;
  std::string rule;
  std::vector<std::string> warnings;
};

/// The distributions of a scenario's configurations. Those of one process are kept, whichever run asked first: a
/// distribution depends on its configuration alone, not on who asks.
class StepTimes {
 public:
  /// `workload` stands instead of what the scenario's trace says, for checks that fit on a part of it. Both must
  /// outlive this.
  explicit StepTimes(const Scenario& scenario, const WorkloadModel* workload = nullptr);
  const StepDistribution& of(const Configuration& configuration);

  /// Of a worker of that pool in that stage.
  const KnownWorkload& known(std::size_t pool, std::size_t stage);

 private:
  WorkloadModel workload(std::size_t pool, std::size_t stage) const;

  const Scenario& scenario_;
  const WorkloadModel* given_;
  std::map<std::pair<std::size_t, std::size_t>, std::shared_ptr<const KnownWorkload>> workloads_;
  std::map<Configuration, std::shared_ptr<const StepDistribution>> known_;
};

}  // namespace ganymede
