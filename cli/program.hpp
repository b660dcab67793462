#pragma once
// The program from its arguments to its exit code.

#include <string>
#include <vector>

#include "cli/exit_codes.hpp"

namespace ganymede::cli {

/// Runs the command that the words name, and prints what it throws. Returns the exit code.
int run_command_line(std::vector<std::string> words);

/// Prints a message about an error to stderr. Returns the code as a number.
int print_error(ExitCode code, const char* message);

}  // namespace ganymede::cli
