#pragma once
// Where the workers of a configuration are: on which sites and nodes, in the order in which the fabric counts them.

#include <cstddef>
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

/// True if nodes that train exchange gradients over NICs that have a burst rate.
bool nics_burst(const Scenario& scenario, const std::vector<int>& nodes);

/// Puts the pools of one place on one site; a network slowdown of the configuration is applied to the sites' platforms.
WorkerLayout layout_workers(const Scenario& scenario, const Configuration& configuration);

/// A link for each pair of the layout's sites: the lowest bandwidth and the highest latency of the links that join
/// their pools. Empty if all nodes are in one place.
std::vector<SiteLink> site_links(const Scenario& scenario, const Configuration& configuration,
                                 const WorkerLayout& layout);

}  // namespace ganymede::sim
