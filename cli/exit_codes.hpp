#pragma once
// The exit codes of the program: the only list. The manual pages are made from it, and a test compares it with
// docs/commands.md.

#include <string_view>

namespace ganymede::cli {

enum class ExitCode : int {
  done = 0,
  failure = 1,
  invalid = 2,
  infeasible = 3,
  goal_missed = 4,
  interrupted = 130,  ///< 128 + SIGINT, as shells report it
};

struct ExitCodeRow {
  ExitCode code;
  std::string_view meaning;
};

inline constexpr ExitCodeRow kExitCodes[] = {
    {ExitCode::done, "done"},
    {ExitCode::failure, "something failed that the input did not cause; or a self-check whose interval did not hold"},
    {ExitCode::invalid, "invalid input or usage: the message says where, what was found, what was expected"},
    {ExitCode::infeasible,
     "the request is valid but nothing can serve it (GPU memory, no instance, no end, "
     "no plan meets its goals, `--max-memory`, `--max-work`), or `merge` lacks runs"},
    {ExitCode::goal_missed,
     "the result is there, but misses the scenario's deadline or budget, a job's deadline, or a limit of `diff "
     "--fail-on`"},
    {ExitCode::interrupted, "interrupted"}};

}  // namespace ganymede::cli
