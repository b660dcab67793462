#pragma once
// What every command shares. One file a command; main.cpp only dispatches.
//
// A command's file defines `void add_NAME(CLI::App& app, Shared& shared)`: it declares its subcommand, whose
// description starts with examples, and sets a callback that does the work. It reports by exception
// (common/errors.hpp); main maps these to exit codes.

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/json.hpp"

namespace ganymede::cli {

/// The shell's exit code of an interrupted program.
inline constexpr int kInterrupted = 130;
/// A user's gate (deadline, budget) is missed.
inline constexpr int kNoPlan = 3;
inline constexpr int kGateMissed = 4;

/// Options that commands have in common; each command adds those that mean something to it.
struct Shared {
  std::string format = "table";  ///< table, json or csv
  std::string output;            ///< "" is standard output
  int jobs = 0;                  ///< child processes at once; 0: one a core
  bool quiet = false;            ///< no progress, no remarks on stderr
  bool color = true;             ///< off with --no-color, NO_COLOR, TERM=dumb or when stdout is no terminal
  int exit_code = 0;             ///< what main returns when nothing was thrown
  int progress_fd = -1;          ///< --progress-fd: progress goes there as lines "done count what" instead
};

/// Prints descriptions as said above.
std::shared_ptr<CLI::FormatterBase> help_formatter();

void add_format(CLI::App& command, Shared& shared, std::initializer_list<const char*> formats);
void add_output(CLI::App& command, Shared& shared);
void add_jobs(CLI::App& command, Shared& shared);
/// --seed: any unsigned 64-bit integer; a negative one is refused, which the parser would wrap.
void add_seed(CLI::App& command, std::uint64_t& seed, const std::string& description);
/// --set /json/pointer=value, any number of times; parse_assignments makes overrides of them.
void add_set(CLI::App& command, std::vector<std::string>& assignments);
std::vector<JsonOverride> parse_assignments(const std::vector<std::string>& assignments);

int jobs(const Shared& shared);
/// Fails before long work if --output cannot be written.
void check_output(const Shared& shared);
/// Refuses an --output that is the same file as `input`.
void keep_input(const Shared& shared, const std::string& input);

/// Writes a command's result to --output (atomically) or to standard output.
void emit(const Shared& shared, const std::string& text);
/// Text for people on stderr, in place of a line of progress; that it may be closed or full is no error.
void say(const std::string& text);
/// A remark for people on stderr, unless --quiet.
void remark(const Shared& shared, const std::string& text);
/// --progress-fd, for programs that start this one; not shown in the help.
void add_progress_fd(CLI::App& app, Shared& shared);
/// Shows how many of `count` are done, for how long and how long it will take (cli/progress.hpp); empty, so not called,
/// where progress is not shown.
std::function<void(std::size_t)> progress_bar(const Shared& shared, std::size_t count, const std::string& what);

void add_train(CLI::App& app, Shared& shared);
void add_generate(CLI::App& app, Shared& shared);
void add_calibrate(CLI::App& app, Shared& shared);
void add_simulate(CLI::App& app, Shared& shared);
void add_sweep(CLI::App& app, Shared& shared);
void add_validate(CLI::App& app, Shared& shared);
void add_plan(CLI::App& app, Shared& shared);
void add_learn(CLI::App& app, Shared& shared);
void add_allreduce(CLI::App& app, Shared& shared);
void add_import_layers(CLI::App& import, Shared& shared);
void add_import_profiler(CLI::App& import, Shared& shared);
void add_import(CLI::App& app, Shared& shared);
void add_report(CLI::App& app, Shared& shared);
void add_export(CLI::App& app, Shared& shared);
void add_export_launch(CLI::App& exports, Shared& shared);
void add_export_mlflow(CLI::App& exports, Shared& shared);
void add_doctor(CLI::App& app, Shared& shared);
void add_catalog(CLI::App& app, Shared& shared);
void add_list(CLI::App& app, Shared& shared);
void add_schema(CLI::App& app, Shared& shared);
void add_serve(CLI::App& app, Shared& shared);
void add_example(CLI::App& app, Shared& shared);
void add_completion(CLI::App& app, Shared& shared);
void add_man(CLI::App& app, Shared& shared);

}  // namespace ganymede::cli
