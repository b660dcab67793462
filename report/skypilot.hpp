#pragma once
// A SkyPilot task (https://docs.skypilot.co, "SkyPilot YAML") that rents what was simulated and trains on it.

#include <string>

#include "report/launch.hpp"

namespace ganymede {

struct SkypilotOptions {
  std::string name = {};            ///< empty: model and instance
  std::string command = {};         ///< empty: `ganymede train`
  std::string image = {};           ///< a container image; empty with a command of one's own: SkyPilot's default
  std::string setup = {};           ///< shell lines before the command; empty: a default
  std::string dataset = "builtin";  ///< "builtin", or a folder or bucket to mount, as SkyPilot's file_mounts take it
  int disk_gb = 256;
};

/// ConfigError for a provider that SkyPilot does not rent from, saying what to do instead.
std::string skypilot_task(const Launch& launch, const SkypilotOptions& options);

}  // namespace ganymede
