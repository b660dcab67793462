#pragma once
// Options that say on which device the kernel runs, and of which model, for all commands that run it.

#include <string>

#include "cli/options.hpp"
#include "kernel/train.hpp"

namespace ganymede::cli {

/// Declares --backend, --precision, --no-graph and --threads. Sets the backend to "auto", its default here.
void add_device_options(Parser command, kernel::TrainOptions& options);

/// Throws ConfigError if `model`, which is to be trained, is only a list of layers, and says what can be done with it.
void check_trainable(const std::string& model);

}  // namespace ganymede::cli
