#pragma once
// ganymede simulate for a service of a generator.

#include <string>
#include <vector>

#include "cli/command.hpp"

namespace ganymede::cli {

/// Simulates a ganymede.service/1 file with these changes and prints what it comes to.
void simulate_service_file(const std::string& file, const std::vector<JsonOverride>& changes, Shared& shared);

}  // namespace ganymede::cli
