#pragma once
// What a described job costs an hour as it asks, and what would be cheaper.

#include <vector>

#include "report/compared.hpp"
#include "studies/task_file.hpp"

namespace ganymede::studies {

/// GPUs of the catalogs that the name may mean: those that fit it best; all if it is "".
std::vector<std::string> gpus_meant(const std::string& name);

/// The cheapest offers that are what is asked for, and those of any cloud and market that are cheaper and have as many
/// GPUs a node, each with as much memory and as fast at least; cheapest first. `gpu` replaces the file's. Throws
/// ConfigError for a GPU, cloud or instance type that no catalog has.
report::LikeAnswer task_offers(const AskedResources& asked, const std::string& gpu);

/// Reads a file as read_task_file() does, and takes of its alternatives with GPUs the one that costs least in the
/// catalogs, or the first with a price where they stand in the order of preference, as SkyPilot does. Alternatives
/// within alternatives are decided first, each list by its own rule.
AskedResources read_priced_task(const std::string& file, const std::string& gpu);

}  // namespace ganymede::studies
