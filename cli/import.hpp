#pragma once
// Fits a platform's links to timed collectives, for `import nccl-tests` and for `calibrate --gpus`, which times them
// itself.

#include <cstdint>
#include <span>
#include <string>

#include "cli/command.hpp"
#include "studies/link_import.hpp"

namespace ganymede::cli {

using studies::LinkImport;

/// An all-reduce that was timed.
struct TimedSize {
  std::int64_t bytes = 0;
  double seconds = 0;
};
/// The log of timed all-reduces as nccl-tests prints it. `by` and `on` name the library and the device.
std::string log_of_sizes(int ranks, const std::string& by, const std::string& on, std::span<const TimedSize> sizes);

/// Fits a link to the log and writes the overlay to --output, and a table of the errors to stderr. Throws ConfigError
/// for a log that contradicts the options.
void import_collective_log(const LinkImport& options, const Shared& shared);

/// Adds --nodes and --gpus-per-node, which a log of nccl-tests may say.
void add_logged_ranks(Parser command, int& nodes, int& gpus_per_node);

}  // namespace ganymede::cli
