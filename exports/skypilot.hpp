#pragma once
// A SkyPilot task (https://docs.skypilot.co, "SkyPilot YAML") that rents what was simulated and trains on it.

#include <string>

#include "exports/launch.hpp"

namespace ganymede::exports {

struct SkypilotOptions {
  std::string name = {};            ///< name of the task; empty: model and instance
  std::string command = {};         ///< a line for bash that trains; empty: `ganymede train`
  std::string image = {};           ///< container image; empty: SkyPilot's default
  std::string setup = {};           ///< a line for bash that prepares each node; empty: a default
  std::string dataset = "builtin";  ///< "builtin", or a folder or bucket to mount, as SkyPilot's file_mounts take it
  int disk_gb = 256;                ///< size of each node's disk in GB
  int places = 1;                   ///< of Launch::others and the chosen one, in which the task may run
};

/// Returns the task as YAML. Throws ConfigError for a provider that SkyPilot does not rent from, and for a name that is
/// no label.
std::string skypilot_task(const Launch& launch, const SkypilotOptions& options);

}  // namespace ganymede::exports
