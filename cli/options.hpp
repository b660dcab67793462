#pragma once
// How a command declares its options: CLI11 behind functions that are compiled once, because its headers alone take 6 s
// to compile. Members have CLI11's names. Files that look into the parser itself (options.cpp, command.cpp, help.cpp,
// …) include CLI11.

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace CLI {
class App;
class Option;
class Validator;
}  // namespace CLI

namespace ganymede::cli {

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

 private:
  friend Check one_of(const std::vector<std::string>& names);
  friend Check integer_between(std::int64_t min, std::int64_t max);
  explicit Check(std::shared_ptr<const CLI::Validator> validator) : validator_(std::move(validator)) {}
  Check(std::function<std::string(std::string&)> problem, const std::string& type, const std::string& name, int);

  std::shared_ptr<const CLI::Validator> validator_;
};

/// Accepts these names only; the help lists them.
Check one_of(const std::vector<std::string>& names);
/// Accepts integers from `min` to `max`.
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

}  // namespace ganymede::cli
