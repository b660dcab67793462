#pragma once
// The options with which a user states a step that was measured by hand, of simulate, sweep and plan.

#include <cstdint>
#include <string>
#include <vector>

#include "cli/command.hpp"

namespace ganymede::cli {

struct MeasuredOptions {
  std::string step, gpu;
  double images_per_second = 0;  ///< 0: not given
  std::int64_t batch = 0;        ///< images on a GPU; 0: not given
};

/// Declares --step, --images-per-second and --on.
void add_measured(Parser command, MeasuredOptions& options);
/// Declares --batch, for commands that do not have it for itself.
void add_measured_batch(Parser command, MeasuredOptions& options);

/// The replacements in a scenario, study or request that the options ask for. Throws ConfigError if some of the options
/// are missing.
std::vector<JsonOverride> measured_overrides(const MeasuredOptions& options);

}  // namespace ganymede::cli
