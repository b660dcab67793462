#pragma once
// The text of --help, fitted to the terminal.

#include <CLI/CLI.hpp>
#include <cstddef>
#include <string>

#include "cli/command.hpp"

namespace ganymede::cli {

/// Breaks the lines of a help text that are wider than `width` between words. A line of two columns, which have two
/// spaces or more between them, keeps them side by side; if there is no room for that, the second is put below. A
/// paragraph is filled anew.
std::string wrapped_help(const std::string& text, std::size_t width);

/// A command in the parser, or the program, with the words that its help, completions and manual page show.
class CommandApp : public CLI::App {
 public:
  CommandApp(const Command& command, CLI::App* above) : App(command.summary, command.name, above), words(command) {}
  const Command words;
};

/// Prints a command's summary in the list of commands, and its examples and the rest in its own help.
class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_description(const CLI::App* app) const override;
  std::string make_subcommand(const CLI::App* sub) const override;
  std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const override;
};

}  // namespace ganymede::cli
