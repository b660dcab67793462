#pragma once
// The differences between the results of two jobs.

#include <filesystem>
#include <string>

namespace ganymede::serve {

/// Compares two plans as `ganymede diff` does, and two sweeps by the runs of both that differ only in their seed.
/// Returns text. Throws ConfigError for results of different kinds, for those that an earlier program wrote, and for
/// those that are too large.
std::string differences_of_results(const std::filesystem::path& before, const std::filesystem::path& after);

}  // namespace ganymede::serve
