#pragma once
// An exporter of exports/ as a subcommand of `ganymede export`.

#include "cli/command.hpp"
#include "exports/exporter.hpp"

namespace ganymede::cli {

/// `exporter` must outlive the command.
Command exporter_command(const exports::Exporter& exporter);

}  // namespace ganymede::cli
