#pragma once
// Errors are sorted by who can mend them. A ConfigError is what the user can mend, a Failure is what went wrong outside
// of the program (a device, a child process), and a programmer's mistake is an assert. Only main() exits.

// cli/exit_codes.hpp gives the exit code of each.

#include <stdexcept>
#include <string>

namespace ganymede {

/// Invalid input or usage: a file, a flag, a value. The message says where, what was found and what was expected.
struct ConfigError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The request is valid but cannot be served (does not fit the GPU's memory, nothing in the catalog holds it).
struct Infeasible : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Something failed for a reason other than the input.
struct Failure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace ganymede
