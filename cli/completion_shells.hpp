#pragma once
// Completion scripts for shells, made of the program's commands. They call nothing: names are written into them.

#include <string>

#include "cli/command_tree.hpp"

namespace ganymede::cli {

std::string bash_completion(const CommandDoc& program);
std::string zsh_completion(const CommandDoc& program);
std::string fish_completion(const CommandDoc& program);

}  // namespace ganymede::cli
