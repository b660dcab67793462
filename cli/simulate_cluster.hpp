#pragma once
// `ganymede simulate` of a cluster of many jobs.

#include <string>
#include <vector>

#include "cli/command.hpp"

namespace ganymede::cli {

/// Simulates a ganymede.cluster/1 file with these changes and prints its result.
void simulate_cluster_file(const std::string& file, const std::vector<JsonOverride>& changes, Shared& shared);

}  // namespace ganymede::cli
