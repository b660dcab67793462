#pragma once
// The commands and options of the program as data, read from the parser itself: what shell completions and manual pages
// are made of, so that they cannot say anything else than --help.

#include <string>
#include <vector>

#include "cli/command.hpp"

namespace ganymede::cli {

struct OptionDoc {
  std::vector<std::string> names;     ///< "-o", "--output"; none: an argument by its place
  std::string place;                  ///< an argument's name
  std::string value;                  ///< what it takes: "TEXT", "INT"; empty: a flag
  std::string description, standard;  ///< the latter: its default, where the parser knows it
  std::vector<std::string> checked;   ///< nothing but these is accepted
  std::vector<std::string> offered;   ///< these are worth offering; `checked` where that is not empty
  bool files = false;                 ///< names of files too
  bool list = false;                  ///< several, with commas
  bool repeats = false, required = false;
};

struct CommandDoc {
  std::vector<std::string> path;  ///< {"import", "layers"}; none: the program
  std::string summary;            ///< one line
  std::string examples, about;    ///< several lines each
  std::vector<OptionDoc> options, arguments;
  std::vector<CommandDoc> commands;

  /// "import layers"
  std::string name() const;
};

/// Every command has the options of the program too, but its --version.
CommandDoc read_commands(CLI::App& app);

/// `command` and all below it, depth first.
std::vector<const CommandDoc*> all_commands(const CommandDoc& command);

}  // namespace ganymede::cli
