#pragma once
// The commands and options of the program as data. They are read from the parser, so that shell completions and manual
// pages, which are made from them, agree with --help.

#include <span>
#include <string>
#include <vector>

#include "cli/command.hpp"

namespace ganymede::cli {

struct OptionDoc {
  std::vector<std::string> names;  ///< "-o", "--output"; empty: a positional argument
  std::string place;               ///< name of a positional argument
  std::string value;               ///< type of its value: "TEXT", "INT"; empty: a flag
  std::string description;
  std::string default_value;         ///< empty: none, or the parser does not know it
  std::vector<std::string> checked;  ///< only these values are accepted, unless empty
  std::vector<std::string> offered;  ///< values that completions offer; equal to `checked` unless that is empty
  bool files = false;                ///< completions offer names of files too
  bool list = false;                 ///< the value is a list with commas
  bool repeats = false, required = false;
};

struct CommandDoc {
  std::vector<std::string> path;     ///< {"import", "layers"}; empty: the program
  std::string summary;               ///< one line
  std::string examples, about = {};  ///< several lines each
  std::vector<OptionDoc> options = {}, arguments = {};
  std::vector<CommandDoc> commands = {};

  /// The path as words: "import layers".
  std::string name() const;
};

/// Reads the program with all its commands. Every command also has the options of the program, except --version.
CommandDoc read_commands(CLI::App& app);

/// Returns `command` and all commands below it, depth first.
std::vector<const CommandDoc*> all_commands(const CommandDoc& command);

/// The names that may stand in place of the last of these words of a line, as the script of a shell reads them: a first
/// line with "files" and "list" where they hold, then a name a line, with its description after `before_description`
/// unless that is empty.
std::string completions(const CommandDoc& program, std::span<const std::string> words,
                        const std::string& before_description);

}  // namespace ganymede::cli
