#pragma once
// Commands, and the options and outputs that they share. A command is an object in a file of its own, listed in
// commands.cpp. It reports errors by exception (common/errors.hpp), which main maps to exit codes.

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "cli/exit_codes.hpp"
#include "common/json_fwd.hpp"

namespace CLI {
class App;
class Option;
class Validator;
}  // namespace CLI

namespace ganymede::cli {

// How a command declares its options: CLI11 behind functions that are compiled once, because its headers alone take 6 s
// to compile. Members have CLI11's names. Files that look into the parser itself (options.cpp, command.cpp, help.cpp,
// …) include CLI11.

/// A condition on the text of an option.
class Check {
 public:
  /// `problem` returns what is wrong with a text; the empty text if nothing is. The help names the value `type`; `name`
  /// is what read_suggestion() reads.
  template <class Problem>
  requires std::is_invocable_r_v<std::string, Problem, std::string&> Check(Problem problem,
                                                                           const std::string& type = "",
                                                                           const std::string& name = "")
      : Check(std::function<std::string(std::string&)>(std::move(problem)), type, name, 0) {}

  const CLI::Validator& validator() const { return *validator_; }
  /// Rewrites a count such as "50M" as its digits before `problem` looks at it.
  static Check of_number(std::function<std::string(const std::string&)> problem, const std::string& type);
  bool rewrites() const { return rewrites_; }

 private:
  friend Check one_of(const std::vector<std::string>& names);
  explicit Check(std::shared_ptr<const CLI::Validator> validator) : validator_(std::move(validator)) {}
  Check(std::function<std::string(std::string&)> problem, const std::string& type, const std::string& name, int);

  std::shared_ptr<const CLI::Validator> validator_;
  bool rewrites_ = false;
};

/// Accepts these names only; the help lists them.
Check one_of(const std::vector<std::string>& names);
/// Accepts integers from `min` to `max`, which may be written as 10k or 50M, as those of all checks of numbers may.
Check integer_between(std::int64_t min, std::int64_t max);

/// An option that was declared; the parser owns it.
class Option {
 public:
  explicit Option(CLI::Option* option) : option_(option) {}
  Option check(const Check& check) const;
  Option transform(const Check& check) const;  ///< a check that may rewrite the text
  Option required() const;
  Option capture_default_str() const;      ///< the help shows the value that the variable has now
  Option delimiter(char separator) const;  ///< values may be separated so, in one word
  Option needs(Option other) const;
  Option excludes(Option other) const;
  Option type_name(const std::string& name) const;
  Option expected(int values) const;  ///< the number of values
  Option expected(int least, int most) const;
  Option one_value_a_time() const;  ///< each value needs the option's name before it
  Option hidden() const;            ///< from the help
  CLI::Option* parser() const { return option_; }

 private:
  CLI::Option* option_;
};

/// A command of the parser, or the program itself; the parser owns it, and copies stand for the same one.
class Parser {
 public:
  explicit Parser(CLI::App& app) : app_(&app) {}

  /// Declares an option "-o,--output", or a positional argument "file", whose value goes to `variable`, which must
  /// outlive the parsing. T: a string, a path, an integer, a double, or a vector of one of these, for options with
  /// several values.
  template <class T>
  Option add_option(const std::string& names, T& variable, const std::string& description = "") const;
  /// The same with a condition on each of its texts.
  template <class T>
  Option add_option(const std::string& names, T& variable, const std::string& description, const Check& check) const {
    return add_option(names, variable, description).check(check);
  }
  /// The same, with a function that is called with the text.
  Option add_option_callback(const std::string& names, const std::function<void(const std::string&)>& given,
                             const std::string& description) const;
  /// Declares a flag; "!--no-graph" makes the variable false.
  Option add_flag(const std::string& names, bool& variable, const std::string& description) const;
  Option add_flag_callback(const std::string& names, std::function<void()> given, const std::string& description) const;
  void callback(std::function<void()> run) const;  ///< what the command does
  void require_subcommand() const;
  /// The options that the arguments gave, by their long names, in the order of their declarations, each with its
  /// values.
  std::vector<std::pair<std::string, std::vector<std::string>>> given() const;
  Parser parent() const;
  CLI::App& parser() const { return *app_; }

 private:
  CLI::App* app_;
};

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
  bool trains = false;     ///< may take half of the machine's memory (common/budget.hpp)
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
/// Declares --format and --output.
void add_result(Parser command, Shared& shared, std::initializer_list<const char*> formats);
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
/// Throws if the file of another option, which may be empty, cannot be written or is that of --output, unless
/// that is a stream, such as /dev/null.
void check_second_output(const Shared& shared, const std::string& file);
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
