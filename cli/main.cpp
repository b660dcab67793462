// Runs the command that the arguments name, and maps errors to exit codes.

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <string>
#include <string_view>
#include <vector>

#include "cli/program.hpp"
#include "common/budget.hpp"
#include "common/file.hpp"

namespace {

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
  std::signal(SIGXFSZ, SIG_IGN);  // a file beyond the limit is an error of write(), after which nothing is left behind
}

}  // namespace

int main(int argc, char** argv) {
  watch_interrupts();
  ganymede::keep_memory_reserve();
  try {
    return ganymede::cli::run_command_line(std::vector<std::string>(argv + std::min(argc, 1), argv + argc));
  } catch (const std::exception& error) {  // no memory for the words or the commands
    return ganymede::cli::print_error(ganymede::cli::ExitCode::failure, error.what());
  }
}
