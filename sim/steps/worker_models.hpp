#pragma once
// Each worker's part of a step: the workload's phases and the path of its data.

#include <cstddef>
#include <vector>

#include "calibration/workload_model.hpp"
#include "sim/scenario/scenario.hpp"
#include "sim/steps/communication.hpp"
#include "sim/steps/step_distribution.hpp"

namespace ganymede::sim {

/// Which of a transferred workload's models is meant: the expected one, or one of the bounds of its step time.
enum class Bound { central, low, high };

/// One model for each pool, empty if the pool has no node.
struct WorkerModels {
  std::vector<calibration::StepModel> by_pool;
  std::vector<double> batch;  ///< Images that a worker of each pool trains in a step.
  double reads = 0;           ///< Number of requests of all workers to the dataset's storage in a step.
};

/// Adapts the pools' workloads (empty if the pool has no node) to the workers of the configuration: adds batches by
/// speed, a power cap, boards that two GPUs share, decoding on crowded hosts and reading from storage if the scenario
/// has them.
WorkerModels models_of(const Scenario& scenario, const Configuration& configuration,
                       const std::vector<calibration::WorkloadModel>& workloads, Bound bound);

/// Makes the worker's own work take `factor` times as long; the input pipeline keeps its times.
void slow_down(calibration::StepModel& model, double factor);
/// Host seconds of a mean step, including decoding and copying but not the wait for storage.
double mean_host_s(const calibration::StepModel& model);

/// The workers of a configuration, numbered site by site and node by node.
struct WorkerLayout {
  std::vector<Site> sites;
  std::vector<std::size_t> pool_of;  ///< Index of each worker's pool.
  std::vector<int> node_sizes;       ///< Workers of each node.
};

/// True if nodes that train exchange gradients over NICs that have a burst rate.
bool nics_burst(const Scenario& scenario, const std::vector<int>& nodes);

/// Puts the pools of one place on one site; a network slowdown of the configuration is applied to the sites' platforms.
WorkerLayout layout_workers(const Scenario& scenario, const Configuration& configuration);

/// A link for each pair of the layout's sites: the lowest bandwidth and the highest latency of the links that join
/// their pools. Empty if all nodes are in one place.
std::vector<SiteLink> site_links(const Scenario& scenario, const Configuration& configuration,
                                 const WorkerLayout& layout);

}  // namespace ganymede::sim
