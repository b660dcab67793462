#pragma once
// On what the kernel runs: options of all commands that run it.

#include <CLI/CLI.hpp>

#include "kernel/train.hpp"

namespace ganymede::cli {

/// --backend, --precision, --no-graph, --threads. The backend becomes "auto".
void add_device_options(CLI::App& command, kernel::TrainOptions& options);

}  // namespace ganymede::cli
