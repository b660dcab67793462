#pragma once
// Options that say on which device the kernel runs, for all commands that run it.

#include "cli/options.hpp"
#include "kernel/train.hpp"

namespace ganymede::cli {

/// Declares --backend, --precision, --no-graph and --threads. Sets the backend to "auto", its default here.
void add_device_options(Parser command, kernel::TrainOptions& options);

}  // namespace ganymede::cli
