#pragma once
// A platform file of SimGrid as a ganymede.platform/1 file.

#include <optional>
#include <string>
#include <vector>

#include "platforms/platform.hpp"

namespace ganymede::sim {

struct SimGridImport {
  std::string file, zone = {};               ///< zone "": all hosts
  std::vector<std::string> hosts = {};       ///< their names, where * stands for any letters; empty: all
  int gpus_per_node = 0;                     ///< hosts in a row; 0: as the file says, or 1 if it does not say
  std::optional<platforms::Gpu> sheet = {};  ///< the GPU that a host stands for; none: as the file says
};

struct ImportedPlatform {
  std::string text;                ///< the platform file
  std::vector<std::string> notes;  ///< about what was left out or is missing
};

/// A host becomes a GPU with the host's speed. Links of one speed that meet in one switch become NICs; everything else
/// becomes a fabric of routes. Hosts that cannot be one pool are left out with a note: those of other speeds than most
/// have, those that routes do not join to the rest, and those above the number that a platform may have. Throws
/// ConfigError for what with_simgrid_platform() refuses, for a choice without hosts, and for what would be no platform.
ImportedPlatform import_simgrid_platform(const SimGridImport& options);

}  // namespace ganymede::sim
