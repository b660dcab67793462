#pragma once
// A platform file of SimGrid as a ganymede.platform/1 file.

#include <optional>
#include <string>
#include <vector>

#include "platforms/platform.hpp"

namespace ganymede::sim {

struct SimGridImport {
  std::string file, zone = {};               ///< zone "": all hosts
  int gpus_per_node = 0;                     ///< hosts in a row; 0: as the file says, or 1 if it does not say
  std::optional<platforms::Gpu> sheet = {};  ///< the GPU that a host stands for; none: as the file says
};

struct ImportedPlatform {
  std::string text;                ///< the platform file
  std::vector<std::string> notes;  ///< about what was left out or is missing
};

/// A host becomes a GPU with the host's speed. Links of one speed that meet in one switch become NICs; everything else
/// becomes a fabric of routes, for at most 256 hosts. Throws ConfigError for what with_simgrid_platform() refuses, for
/// hosts of several speeds, and for what would be no platform.
ImportedPlatform import_simgrid_platform(const SimGridImport& options);

}  // namespace ganymede::sim
