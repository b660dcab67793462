// Runs the command that the arguments name, and maps errors to exit codes.

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <span>

#include "cli/command.hpp"
#include "cli/terminal.hpp"
#include "common/errors.hpp"

namespace {

using ganymede::cli::ExitCode;

int print_error(ExitCode code, const char* message) {
  ganymede::cli::say(
      ganymede::report::wrap_prose(fmt::format("ganymede: {}\n", message), ganymede::cli::remark_width()));
  return static_cast<int>(code);
}

/// The arguments from the first word on, which should be a command, after the options that stand before it. Empty if
/// there is no such word, or if an unknown option comes first: the parser refuses that.
std::span<char* const> from_command(const CLI::App& app, std::span<char* const> arguments) {
  for (; !arguments.empty(); arguments = arguments.subspan(1)) {
    const std::string word = arguments.front();
    if (!word.starts_with('-')) return arguments;
    if (app.get_option_no_throw(word) == nullptr) return {};
  }
  return {};
}

/// Throws ConfigError with the nearest command for a word that is no command. The library only says that one is
/// missing.
void check_command(const CLI::App& app, std::span<char* const> arguments) {
  arguments = from_command(app, arguments);
  if (arguments.empty()) return;
  const std::string word = arguments.front();
  std::vector<std::string> names;
  for (const auto* command : app.get_subcommands({})) names.push_back(command->get_name());
  if (names.empty()) return;
  if (std::find(names.begin(), names.end(), word) != names.end())
    return check_command(*app.get_subcommand(word), arguments.subspan(1));
  const auto guess = ganymede::nearest(word, names);
  throw ganymede::ConfigError(
      fmt::format("no command \"{}{}\", expected {}{}", app.get_parent() == nullptr ? "" : app.get_name() + " ", word,
                  ganymede::list_of(names), guess ? fmt::format("; did you mean \"{}\"?", *guess) : ""));
}

}  // namespace

int main(int argc, char** argv) {
  using namespace ganymede;
  cli::Shared shared;
  shared.color = cli::may_color();
  const auto program = cli::make_program(cli::commands(), shared);
  try {
    check_command(*program, std::span(argv, static_cast<std::size_t>(argc)).subspan(argc > 0 ? 1 : 0));
    program->parse(argc, argv);
    return static_cast<int>(shared.exit_code);
  } catch (const CLI::ParseError& error) {
    // The library throws for --help and --version too, with exit code 0. Its codes for errors are 100 and above.
    return program->exit(error) == 0 ? 0 : static_cast<int>(ExitCode::invalid);
  } catch (const ConfigError& error) {
    return print_error(ExitCode::invalid, error.what());
  } catch (const Infeasible& error) {
    return print_error(ExitCode::infeasible, error.what());
  } catch (const std::exception& error) {
    return print_error(ExitCode::failure, error.what());
  }
}
