// Runs the command that the arguments name, and maps errors to exit codes.

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "cli/arguments.hpp"
#include "cli/ask.hpp"
#include "cli/command.hpp"
#include "cli/terminal.hpp"
#include "common/errors.hpp"
#include "common/file.hpp"
#include "common/memory_reserve.hpp"
#include "common/printable.hpp"
#include "rehearsal/host_connections.hpp"

namespace {

using ganymede::cli::ExitCode;

int print_error(ExitCode code, const char* message) {
  ganymede::cli::say(ganymede::report::wrap_prose(fmt::format("ganymede: {}\n", ganymede::printable(message, "\n")),
                                                  ganymede::cli::remark_width()));
  return static_cast<int>(code);
}

/// Written when the user or a scheduler ends the program, so that the shell's prompt begins a line of its own. Children
/// of the program inherit the handler and stay silent.
pid_t program_process = 0;
void end_by_interrupt(int signal) {
  constexpr std::string_view kMessage = "\nganymede: interrupted\n";
  if (::getpid() == program_process) {
    [[maybe_unused]] const auto written = ::write(STDERR_FILENO, kMessage.data(), kMessage.size());
    ganymede::remove_unfinished_files();
  }
  std::signal(signal, SIG_DFL);
  ::raise(signal);  // a shell sees that the signal has ended the program, and stops its loops too
}

void watch_interrupts() {
  program_process = ::getpid();
  // A shell that starts the program in the background ignores the signal, which then stays ignored.
  for (const int signal : {SIGINT, SIGTERM})
    if (std::signal(signal, end_by_interrupt) == SIG_IGN) std::signal(signal, SIG_IGN);
}

/// Throws ConfigError for an argument that is not UTF-8: names of files and values of flags become part of results.
void check_words(const std::vector<std::string>& words) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (ganymede::is_utf8(words[i])) continue;
    const std::string flag = i > 0 && words[i - 1].starts_with("--") ? words[i - 1] + " " : "";
    throw ganymede::ConfigError(fmt::format("{}{}: is not UTF-8", flag, ganymede::printable(words[i])));
  }
}

int run(std::vector<std::string> words) {
  using namespace ganymede;
  cli::Shared shared;
  shared.color = cli::may_color();
  const auto program = cli::make_program(cli::commands(), shared);
  words = cli::with_help_option(std::move(words));
  try {
    check_words(words);
    if (cli::may_ask(words)) words = cli::ask_for_plan(std::move(words));
    cli::check_command(*program, words);
    std::vector<std::string> reversed(words.rbegin(), words.rend());  // as the parser takes them
    program->parse(std::move(reversed));
    return static_cast<int>(shared.exit_code);
  } catch (const CLI::Success& success) {  // --help and --version
    return program->exit(success);
  } catch (const CLI::ParseError& error) {
    // The library's codes for errors are 100 and above.
    if (const auto message = cli::unknown_option(*program)) return print_error(ExitCode::invalid, message->c_str());
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

}  // namespace

int main(int argc, char** argv) {
  watch_interrupts();
  ganymede::keep_memory_reserve();
  try {
    return run(std::vector<std::string>(argv + std::min(argc, 1), argv + argc));
  } catch (const std::exception& error) {  // no memory for the words or the commands
    return print_error(ganymede::cli::ExitCode::failure, error.what());
  }
}
