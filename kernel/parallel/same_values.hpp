#pragma once
// The processes of one training must be started alike.

#include <string>
#include <utility>
#include <vector>

#include "kernel/parallel/communicator.hpp"

namespace ganymede::kernel {

/// The options that all processes must share, each by its name, in the same order in all of them.
using NamedValues = std::vector<std::pair<std::string, std::string>>;

/// Throws ConfigError in all processes if one has another value than rank 0: they would compute different things, or
/// wait for one another for ever. The message names the option and a process.
void check_same_values(const NamedValues& values, Communicator& communicator);

}  // namespace ganymede::kernel
