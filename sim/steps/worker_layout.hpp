#pragma once
// Where the workers of a configuration are: on which sites and nodes, in the order in which the fabric counts them.

#include <cstddef>
#include <optional>
#include <vector>

#include "sim/scenario/scenario.hpp"
#include "sim/steps/communication.hpp"
#include "sim/steps/step_distribution.hpp"

namespace ganymede::sim {

/// The workers of a configuration, numbered site by site and node by node.
struct WorkerLayout {
  std::vector<Site> sites;
  std::vector<std::size_t> pool_of;  ///< Index of each worker's pool.
  std::vector<int> node_sizes;       ///< Workers of each node.
};

/// Puts the pools of one place on one site; a network slowdown of the configuration is applied to the sites' platforms.
WorkerLayout layout_workers(const Scenario& scenario, const Configuration& configuration);

/// The lowest bandwidth and the highest latency of the links that join the configuration's places; nullopt if all nodes
/// are in one place.
std::optional<platforms::Link> narrowest_link(const Scenario& scenario, const Configuration& configuration);

}  // namespace ganymede::sim
