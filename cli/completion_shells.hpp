#pragma once
// Completion scripts for shells, made from the program's commands. All names are written into the scripts, which
// therefore do not run the program.

#include <string>

#include "cli/command_tree.hpp"

namespace ganymede::cli {

std::string bash_completion(const CommandDoc& program);
std::string zsh_completion(const CommandDoc& program);
std::string fish_completion(const CommandDoc& program);

}  // namespace ganymede::cli
