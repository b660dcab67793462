#pragma once
// Finds SkyPilot's lists of prices on the disk, and makes platforms of them.

#include <filesystem>
#include <string>
#include <vector>

namespace ganymede::platforms {

struct SkyCatalogs {
  std::filesystem::path folder = {};  ///< as SkyPilot's own; a folder of one version; or a list. Empty: SkyPilot's own
  std::vector<std::string> clouds = {};  ///< SkyPilot's names of them or ours; empty: all that the folder has
  std::string as_of = {};                ///< the day on which the lists were read; empty: that of each file
  std::string today = {};                ///< YYYY-MM-DD; a later day is an error
};

struct SkyPlatforms {
  struct File {
    std::string name, text;  ///< "lambda", a platform
  };
  std::vector<File> files;
  std::vector<std::string> remarks;
};

/// Reads CLOUD/vms.csv of the newest version (v8 before v6) in `folder`, which without one is ~/.sky/catalogs. Throws
/// ConfigError for a folder without lists, a cloud without one, with the nearest name, and for what
/// platform_of_sky_list() refuses.
SkyPlatforms platforms_of_sky(const SkyCatalogs& catalogs);

}  // namespace ganymede::platforms
