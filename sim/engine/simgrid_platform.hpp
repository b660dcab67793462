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
};

struct SimGridPlatform {
  std::vector<SimGridHost> hosts;                               ///< in the order of the file
  std::vector<std::pair<std::string, std::string>> properties;  ///< of the outermost zone
  /// The links that routes cross and a route for each pair of hosts. A link of kind FATPIPE, which flows do not share,
  /// is no link here but a limit of the flows (FabricRoute::per_flow).
  std::vector<platforms::RoutedLink> links;
  std::vector<platforms::FabricRoute> routes;
};

struct ImportedText {
  std::string text;
  std::vector<std::string> left_out;  ///< what of the file was not read, for example "<config> in line 4"
};

/// Reads the hosts of one zone or cluster, or of all if `zone` is empty, in a child process, and returns what `work`
/// makes of them there. Throws ConfigError, located where SimGrid or its XML say a line, for a file that is no
/// platform, a zone that is not there, and a pair of hosts without a route; and whatever `work` throws.
ImportedText with_simgrid_platform(const std::string& file, const std::string& zone,
                                   const std::function<std::string(const SimGridPlatform&)>& work);

}  // namespace ganymede::sim
