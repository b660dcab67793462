#pragma once
// Makes a platform of one of SkyPilot's lists of prices (its catalogs' CLOUD/vms.csv), whatever the cloud.

#include <filesystem>
#include <string>
#include <vector>

#include "common/csv.hpp"
#include "common/errors.hpp"

namespace ganymede::platforms {

struct SkyListOptions {
  std::string cloud;              ///< SkyPilot's name of the cloud: "lambda", "do"
  std::string as_of = "undated";  ///< the day on which the prices held
};

struct SkyPlatform {
  std::string text;                  ///< a `ganymede.platform/1`
  std::vector<std::string> remarks;  ///< what was left out, each once
};

/// A list without a price of a machine that can be used.
struct NoMachines : ConfigError {
  using ConfigError::ConfigError;
};

/// Makes a platform of the list's machines with accelerators. A price is composed as SkyPilot does (its sky/catalog/
/// common.py and gcp_catalog.py): that of a row with an instance type; or, where accelerators have rows without one,
/// theirs and that of the cheapest host in their zone that takes them, both of the same market. The price of a region
/// is that of its cheapest zone; a price of 0 or an empty cell is none. As SkyPilot's, prices of Google's machines
/// leave out the local disks that belong to some (its issue 3281), which a remark says. An accelerator's figures are
/// those of its data sheet (gpu_sheets.hpp); accelerators without one are left out and named once. What the list does
/// not say, links, adapters, storage, billing, egress, is taken from the catalog of that cloud if the program has one,
/// else assumed and marked as unconfirmed.
///
/// Throws ConfigError "file: line N: ..." for a missing column, a price that is negative, no number or absurd, two
/// prices of one machine in one place, a count of accelerators that is none, a second line of column names, and
/// NoMachines for a list without any machine that can be used.
SkyPlatform platform_of_sky_list(const CsvTable& list, const SkyListOptions& options);
/// The same for a file, of which some megabytes are in memory at a time.
SkyPlatform load_sky_list(const std::filesystem::path& file, const SkyListOptions& options);

}  // namespace ganymede::platforms
