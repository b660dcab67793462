#pragma once
// Hosts, links and routes of a SimGrid platform file, as SimGrid itself finds them: whatever the file describes
// (clusters, zones, routing by shortest paths), a route is a list of links.

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/units.hpp"
#include "platforms/platform.hpp"

namespace ganymede::sim {

struct SimGridHost {
  std::string name;
  FlopsPerSecond speed;             ///< of all its cores
  std::optional<Watts> idle, peak;  ///< by its property wattage_per_state
  std::vector<std::string> zones;   ///< around it, also its cluster
};

struct SimGridPlatform {
  std::vector<SimGridHost> hosts;                               ///< in the order of the file
  std::vector<std::pair<std::string, std::string>> properties;  ///< of the outermost zone
  /// The links that routes cross and a route for each pair of hosts that one joins. A link of kind FATPIPE, which flows
  /// do not share, is no link here but a limit of the flows (FabricRoute::per_flow).
  std::vector<platforms::RoutedLink> links;
  std::vector<platforms::FabricRoute> routes;
  std::vector<std::string> notes;  ///< what was left out and why
};

/// Reads the hosts of a file in a child process, lets `choose` remove some before their routes are read, and returns
/// what `work` makes of the rest there. Throws ConfigError, located where SimGrid or its XML say a line, for a file
/// that is no platform; and whatever `choose` and `work` throw.
std::string with_simgrid_platform(const std::string& file, const std::function<void(SimGridPlatform&)>& choose,
                                  const std::function<std::string(SimGridPlatform&)>& work);

}  // namespace ganymede::sim
