#pragma once
// From timed collectives to a platform's links: `import nccl-tests`, and `calibrate --gpus`, which times them itself.

#include <string>

#include "cli/command.hpp"

namespace ganymede::cli {

struct LinkImport {
  std::string log, catalog, overlay, instance, scheme;
  int nodes = 0;          ///< 0: what the log says, else 1
  int gpus_per_node = 0;  ///< 0: what the log says, else all of the instance
};

/// Fits a link to the log and writes the overlay to --output; the table goes to stderr.
void import_collective_log(const LinkImport& options, const Shared& shared);

}  // namespace ganymede::cli
