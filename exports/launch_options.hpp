#pragma once
// The options that the exporters of launch files (SkyPilot, Kubernetes) have in common.

#include <vector>

#include "exports/exporter.hpp"
#include "exports/launch.hpp"

namespace ganymede::exports {

/// The container image that a launch file names if the user gives no image. No image is published under this name.
inline constexpr const char* kPlaceholderImage = "ganymede:" GANYMEDE_VERSION;

/// Returns the options --run, --name, --command and --disk, followed by `more`.
std::vector<ExportOption> launch_options(std::vector<ExportOption> more);

/// Reads what to launch, and says on the console which run of a sweep was taken if the user chose no run. Throws
/// ConfigError for a model that `ganymede train` does not have, unless --command says how it is trained.
Launch launch_of(const report::Document& document, const ExportValues& values, const ExportConsole& console);

}  // namespace ganymede::exports
