#pragma once
// What each worker of a configuration does in a step: the workload's phases, the way of its data included.

#include <string>
#include <vector>

#include "calibration/workload_model.hpp"
#include "sim/steps/communication.hpp"
#include "sim/steps/step_distribution.hpp"

namespace ganymede {

/// The workers of a configuration in the order in which the fabric counts them.
struct Crew {
  std::vector<Site> sites;
  std::vector<std::size_t> pool_of;  ///< by worker
  std::vector<int> node_sizes;       ///< workers of each node
};

Crew crew_of(const Scenario& scenario, const Configuration& configuration);

/// Of the links that join the places of a configuration; none where all are in one.
std::optional<Link> narrowest_link(const Scenario& scenario, const Configuration& configuration);

enum class Bound { central, low, high };

/// One model a pool (empty where it has no node).
struct WorkerModels {
  std::vector<StepModel> by_pool;
  std::vector<double> batch;  ///< images of a worker, by pool
  double reads = 0;           ///< requests to storage of all workers a step
  std::vector<std::string> warnings;
};

WorkerModels models_of(const Scenario& scenario, const Configuration& configuration,
                       const std::vector<WorkloadModel>& workloads, Bound bound);

/// Of the host's memory, what a cache of the dataset takes; 0 where nothing is cached in memory or known of it.
double cache_share(const Scenario& scenario);
/// Whether the dataset fits where the scenario says that it is kept after the first epoch, in a share of the memory.
bool fits_cache(const Scenario& scenario, double memory = 1);

}  // namespace ganymede
