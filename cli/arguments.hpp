#pragma once
// Finds which command or option a misspelt word stands for, which the parser of arguments cannot say.

#include <optional>
#include <string>
#include <vector>

#include "cli/command.hpp"

namespace ganymede::cli {

/// The words with "help COMMAND" written as "COMMAND --help", and "help" alone as "--help".
std::vector<std::string> with_help_option(std::vector<std::string> words);

/// Throws ConfigError with the nearest command for a word that is no command. The parser only says that one is missing.
void check_command(const CLI::App& program, const std::vector<std::string>& words);

/// After the parser has refused the words: the message for the first one that looks like an option and is none, with
/// the option that it may stand for; nullopt if there is no such word.
std::optional<std::string> unknown_option(const CLI::App& program);

}  // namespace ganymede::cli
