#include "cli/options.hpp"

#include <CLI/CLI.hpp>
#include <filesystem>
#include <optional>

namespace ganymede::cli {

Check::Check(std::function<std::string(std::string&)> problem, const std::string& type, const std::string& name, int)
    : validator_(std::make_shared<CLI::Validator>(std::move(problem), type, name)) {}

Check one_of(const std::vector<std::string>& names) { return Check(std::make_shared<CLI::IsMember>(names)); }
Check integer_between(std::int64_t min, std::int64_t max) { return Check(std::make_shared<CLI::Range>(min, max)); }

Option Option::check(const Check& check) const { return Option(option_->check(check.validator())); }
Option Option::transform(const Check& check) const { return Option(option_->transform(check.validator())); }
Option Option::required() const { return Option(option_->required()); }
Option Option::capture_default_str() const { return Option(option_->capture_default_str()); }
Option Option::delimiter(char separator) const { return Option(option_->delimiter(separator)); }
Option Option::needs(Option other) const { return Option(option_->needs(other.option_)); }
Option Option::excludes(Option other) const { return Option(option_->excludes(other.option_)); }
Option Option::type_name(const std::string& name) const { return Option(option_->type_name(name)); }
Option Option::expected(int values) const { return Option(option_->expected(values)); }
Option Option::expected(int least, int most) const { return Option(option_->expected(least, most)); }
Option Option::one_value_a_time() const { return Option(option_->allow_extra_args(false)); }
Option Option::hidden() const { return Option(option_->group("")); }

template <class T>
Option Parser::add_option(const std::string& names, T& variable, const std::string& description) const {
  return Option(app_->add_option(names, variable, description));
}
Option Parser::add_option_callback(const std::string& names, const std::function<void(const std::string&)>& given,
                                   const std::string& description) const {
  return Option(app_->add_option_function<std::string>(names, given, description));
}
Option Parser::add_flag(const std::string& names, bool& variable, const std::string& description) const {
  return Option(app_->add_flag(names, variable, description));
}
Option Parser::add_flag_callback(const std::string& names, std::function<void()> given,
                                 const std::string& description) const {
  return Option(app_->add_flag_callback(names, std::move(given), description));
}
void Parser::callback(std::function<void()> run) const { app_->callback(std::move(run)); }
void Parser::require_subcommand() const { app_->require_subcommand(1); }
std::vector<std::pair<std::string, std::vector<std::string>>> Parser::given() const {
  std::vector<std::pair<std::string, std::vector<std::string>>> all;
  for (const CLI::Option* option : std::as_const(*app_).get_options()) {
    if (option->count() == 0 || option->get_lnames().empty()) continue;
    const bool flag = option->get_items_expected_max() == 0;
    all.emplace_back("--" + option->get_lnames().front(), flag ? std::vector<std::string>() : option->results());
  }
  return all;
}
Parser Parser::parent() const { return Parser(*app_->get_parent()); }

// NOLINTNEXTLINE(bugprone-macro-parentheses): T is a type
#define GANYMEDE_OPTION(T) template Option Parser::add_option(const std::string&, T&, const std::string&) const;
GANYMEDE_OPTION(std::string)
GANYMEDE_OPTION(std::filesystem::path)
GANYMEDE_OPTION(int)
GANYMEDE_OPTION(std::int64_t)
GANYMEDE_OPTION(std::uint64_t)
GANYMEDE_OPTION(double)
GANYMEDE_OPTION(float)
GANYMEDE_OPTION(std::optional<int>)
GANYMEDE_OPTION(std::optional<float>)
GANYMEDE_OPTION(std::vector<std::string>)
GANYMEDE_OPTION(std::vector<int>)
GANYMEDE_OPTION(std::vector<std::int64_t>)
GANYMEDE_OPTION(std::vector<double>)
#undef GANYMEDE_OPTION

}  // namespace ganymede::cli
