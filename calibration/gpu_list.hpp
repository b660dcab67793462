#pragma once
// The GPUs that catalogs have or whose kernel times are known.

#include <vector>

#include "platforms/catalog_lists.hpp"

namespace ganymede::calibration {

/// GPUs whose kernel times are known, with the providers that have them, then everything else that the catalogs have.
std::vector<platforms::ListedName> list_gpus();

}  // namespace ganymede::calibration
