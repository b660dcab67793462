#pragma once
// The program from its arguments to its exit code.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cli/command.hpp"
#include "cli/exit_codes.hpp"

namespace ganymede::cli {

// The program without arguments on a terminal: it asks what to train, for how many images and by when or for how much,
// and answers with a plan.

/// Prints a question and returns the answer, without blanks around it; nullopt at the end of the input.
using Asker = std::function<std::optional<std::string>(const std::string& question)>;

/// Asks, a question again after an answer that cannot be understood, and returns the arguments of the plan: "plan",
/// "--model", "dcgan-64", … An empty answer takes the default, which the question shows. Throws ConfigError at the end
/// of the input.
std::vector<std::string> ask_for_plan(const Asker& ask);

/// Runs the command that the words name, and prints what it throws. Returns the exit code.
int run_command_line(std::vector<std::string> words);

/// Prints a message about an error to stderr. Returns the code as a number.
int print_error(ExitCode code, const char* message);

}  // namespace ganymede::cli
