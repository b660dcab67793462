#pragma once
// An allocation as a platform file of SimGrid 3.32 (DTD 4.1), for SMPI, WRENCH, Batsim and other users of SimGrid.

#include <string>
#include <vector>

#include "platforms/platform.hpp"

namespace ganymede::exports {

struct SimGridRequest {
  const platforms::Platform& platform;
  const platforms::Instance& instance;  ///< one of the platform's
  int nodes = 1;
  int gpus_per_node = 1;
  std::string region;         ///< whose price and carbon intensity stand in the file; empty: none
  bool unit_factors = false;  ///< the file sets the factors of SimGrid's network models to one
};

struct SimGridExport {
  std::string xml;
  std::vector<std::string> warnings;  ///< what the model knows and XML cannot say
};

/// A host a GPU, named so that their alphabetical order is that of the ranks; a route for each pair of GPUs. Throws
/// ConfigError for more GPUs than a file can hold, for an instance without the links that it needs, and for a region
/// where the platform has no price.
SimGridExport simgrid_platform(const SimGridRequest& request);

}  // namespace ganymede::exports
