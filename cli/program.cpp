#include "cli/program.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "cli/arguments.hpp"
#include "cli/ask.hpp"
#include "cli/command.hpp"
#include "cli/terminal.hpp"
#include "common/errors.hpp"
#include "common/printable.hpp"
#include "rehearsal/host_connections.hpp"

namespace ganymede::cli {
namespace {

/// Throws ConfigError for an argument that is not UTF-8: names of files and values of flags become part of results.
void check_utf8(const std::vector<std::string>& words) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (is_utf8(words[i])) continue;
    const std::string flag = i > 0 && words[i - 1].starts_with("--") ? words[i - 1] + " " : "";
    throw ConfigError(fmt::format("{}{}: is not UTF-8", flag, printable(words[i])));
  }
}

}  // namespace

int print_error(ExitCode code, const char* message) {
  say(report::wrap_prose(fmt::format("ganymede: {}\n", printable(message, "\n")), remark_width()));
  return static_cast<int>(code);
}

int run_command_line(std::vector<std::string> words) {
  Shared shared;
  shared.color = may_color();
  // The version needs no command, and the options of all take as long to declare as everything else that the program
  // does to begin.
  const bool only_version = words == std::vector<std::string>{"--version"};
  const auto program = make_program(only_version ? std::span<const Command>() : commands(), shared);
  words = with_help_option(std::move(words));
  try {
    check_utf8(words);
    if (may_ask(words)) words = ask_for_plan(std::move(words));
    check_command(*program, words);
    std::vector<std::string> reversed(words.rbegin(), words.rend());  // as the parser takes them
    program->parse(std::move(reversed));
    return static_cast<int>(shared.exit_code);
  } catch (const CLI::Success& success) {  // --help and --version
    return program->exit(success);
  } catch (const CLI::ParseError& error) {
    // The library's codes for errors are 100 and above.
    if (const auto message = unknown_option(*program)) return print_error(ExitCode::invalid, message->c_str());
    program->exit(error);
    return static_cast<int>(ExitCode::invalid);
  } catch (const ConfigError& error) {
    return print_error(ExitCode::invalid, error.what());
  } catch (const Infeasible& error) {
    return print_error(ExitCode::infeasible, error.what());
  } catch (const rehearsal::Interrupted& error) {
    return print_error(ExitCode::interrupted, error.what());
  } catch (const std::exception& error) {
    return print_error(ExitCode::failure, error.what());
  }
}

}  // namespace ganymede::cli
