#pragma once
// The processes of one training must be started alike.

#include "cli/train_report.hpp"
#include "kernel/parallel/communicator.hpp"

namespace ganymede::cli {

/// Throws ConfigError in all processes if one has another value of an option that all must share: they would compute
/// different things, or wait for one another for ever. The message names the option and a process.
void check_same_options(const TrainArguments& arguments, kernel::Communicator& communicator);

}  // namespace ganymede::cli
