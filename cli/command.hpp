#pragma once
// Commands, and the options and outputs that they share. A command is an object in a file of its own, listed in
// commands.cpp. It reports errors by exception (common/errors.hpp), which main maps to exit codes.

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "cli/exit_codes.hpp"
#include "cli/options.hpp"
#include "common/json_fwd.hpp"

namespace ganymede::cli {

/// Options that several commands have. Each command declares those that it supports.
struct Shared {
  std::string format = "table";         ///< table, json or csv
  std::string output;                   ///< a file; empty: standard output
  int jobs = 0;                         ///< child processes at once; 0: one for each core
  bool quiet = false;                   ///< neither progress nor remarks on stderr
  bool color = true;                    ///< off with --no-color, NO_COLOR, TERM=dumb or when stdout is no terminal
  ExitCode exit_code = ExitCode::done;  ///< what main returns when nothing was thrown
  int progress_fd = -1;                 ///< --progress-fd: progress goes there as lines "done count what" instead
};

/// A command of the program, described as data: the overview, the help, completions and manual pages show it.
struct Command {
  std::string name;
  std::string summary;     ///< one line, for the overview
  std::string examples;    ///< lines of a shell, indented by two
  std::string about = {};  ///< lines that say more than the summary; may be empty
  std::string group = {};  ///< the overview's heading; "": it has none
  /// Declares the options of `command` and sets the callback that does the work. `shared` outlives the callback.
  std::function<void(Parser command, Shared& shared)> declare = {};
};

/// Every command, in the order of the overview (commands.cpp).
std::span<const Command> commands();

/// Adds a command below `above`, which is the program or a command with subcommands.
void add_command(Parser above, const Command& command, Shared& shared);

/// The program with these commands, before its arguments are parsed. `shared` must outlive it.
std::unique_ptr<CLI::App> make_program(std::span<const Command> commands, Shared& shared);

/// Declares --format, which accepts one of `formats`.
void add_format(Parser command, Shared& shared, std::initializer_list<const char*> formats);
/// Declares --output.
void add_output(Parser command, Shared& shared);
/// Declares --jobs.
void add_jobs(Parser command, Shared& shared);
/// Declares --seed, an integer from 0 to 2^64 - 1. The parser alone would accept a negative number and wrap it.
void add_seed(Parser command, std::uint64_t& seed, const std::string& description);
/// For an option's check(): refuses the empty text, as of a shell's variable that is not set.
std::string not_empty(const std::string& text);
/// A validator for an option's check(). It accepts integers from 1 on.
Check positive_integer();
/// Accepts finite numbers above zero. CLI11's own check names the largest of all numbers, in 309 digits.
Check positive_number();
/// Unlike CLI11's own range it refuses "nan", which is neither below nor above anything.
Check number_between(double min, double max);
/// A validator for an option's transform(): it accepts integers from 1 on, also as 50M, 50k or 5e7.
Check positive_count();
/// Declares --set /json/pointer=value, which may be given any number of times.
void add_set(Parser command, std::vector<std::string>& assignments);
/// Returns the replacements that --set asks for. Throws ConfigError for text that is not /json/pointer=value.
std::vector<JsonOverride> parse_assignments(const std::vector<std::string>& assignments);

/// The number of child processes to run at once.
int jobs(const Shared& shared);
/// Throws if --output cannot be written. Called before long work.
void check_output(const Shared& shared);
/// Throws ConfigError if --output is the same file as `input`.
void keep_input(const Shared& shared, const std::string& input);

/// Writes a command's result to --output (atomically) or to standard output.
void emit(const Shared& shared, const std::string& text);
/// Writes text for people to stderr, in place of a line of progress. It is no error if stderr is closed or full.
void say(const std::string& text);
/// Writes a remark for people to stderr, unless --quiet is given.
void remark(const Shared& shared, const std::string& text);
/// Declares --progress-fd, for programs that start this one. The help does not show it.
void add_progress_fd(Parser app, Shared& shared);
/// Shows how many of `count` pieces are done, the time so far, and how long the rest will take (progress.hpp). The
/// returned function is called with the number of pieces done; it is empty if progress is not shown.
std::function<void(std::size_t)> progress_bar(const Shared& shared, std::size_t count, const std::string& what);

}  // namespace ganymede::cli
