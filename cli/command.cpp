#include "cli/command.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <system_error>

#include "cli/help.hpp"
#include "cli/progress.hpp"
#include "cli/shared_options.hpp"
#include "common/budget.hpp"
#include "common/errors.hpp"
#include "common/file.hpp"
#include "common/json.hpp"
#include "common/plain_text.hpp"
#include "common/printable.hpp"
#include "common/process.hpp"
#include "common/written.hpp"

namespace ganymede::cli {

Check::Check(std::function<std::string(std::string&)> problem, const std::string& type, const std::string& name, int)
    : validator_(std::make_shared<CLI::Validator>(std::move(problem), type, name)) {}

Check one_of(const std::vector<std::string>& names) { return Check(std::make_shared<CLI::IsMember>(names)); }

Check Check::of_number(std::function<std::string(const std::string&)> problem, const std::string& type) {
  Check check(
      [problem = std::move(problem)](std::string& text) {
        if (const auto count = parse_count(text)) text = std::to_string(*count);
        return problem(text);
      },
      type);
  check.rewrites_ = true;
  return check;
}

Check integer_between(std::int64_t min, std::int64_t max) {
  return Check::of_number([range = CLI::Range(min, max)](std::string text) { return range(text); },
                          fmt::format("INT in [{} - {}]", min, max));
}

Option Option::check(const Check& check) const {
  return Option(check.rewrites() ? option_->transform(check.validator()) : option_->check(check.validator()));
}
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
void Parser::callback(std::function<void()> run) const {
  const bool trains = dynamic_cast<const CommandApp&>(*app_).words.trains;
  app_->callback([trains, run = std::move(run)] {
    begin_memory_budget(trains);
    run();
  });
}
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

namespace {

/// Declares what every command is bounded by (common/budget.hpp).
void add_budget(Parser program) {
  program.add_option_callback(
      "--max-memory",
      [](const std::string& text) {
        set_memory_budget(quantity_of("--max-memory", text, Bytes{1 << 26}, Bytes{1e18}, "64MiB to 1e9 GB"));
      },
      "memory that each process may take (2GiB; a training: half of the machine's); beyond it: exit code 3");
  program.add_option_callback(
      "--max-work",
      [](const std::string& text) {
        const auto events = parse_count(text);
        if (!events || *events < 1)
          throw ConfigError(fmt::format("--max-work {}: expected a positive integer, such as 100M", text));
        set_work_budget(*events);
      },
      "events and messages of one simulation that may be simulated singly (50M); beyond it: exit code 3");
}

constexpr const char* kSummary =
    "How long a GAN training takes on a cloud, how busy the hardware is and what it costs, before you pay for it.";
constexpr const char* kExamples =
    "  ganymede train --model mlp-gan --steps 300 --trace trace.json     train for real and record the steps\n"
    "  ganymede example scenario > scenario.json                         a commented file to start from\n"
    "  ganymede simulate scenario.json                                   time, utilization, cost of a run\n"
    "  ganymede sweep studies/first-look.json                            platforms x GPU counts x schemes\n"
    "  ganymede plan --model dcgan-64 --images 50000000 --deadline 60h --budget 500USD      what to rent\n"
    "  ganymede catalog --gpu A100                                       prices, and how old they are\n"
    "  ganymede allreduce --catalog aws --instance p4d.24xlarge --nodes 2 --scheme ring,nccl --bytes 64MiB\n"
    "  ganymede COMMAND --help                                           examples and options of a command\n";

}  // namespace

void add_command(Parser above, const Command& command, Shared& shared) {
  CLI::App* const added = above.parser().add_subcommand(std::make_shared<CommandApp>(command, &above.parser()));
  added->group(command.group.empty() ? "Subcommands" : command.group);  // else it is that of the command above
  command.declare(Parser(*added), shared);
}

std::unique_ptr<CLI::App> make_program(std::span<const Command> commands, Shared& shared) {
  std::unique_ptr<CLI::App> program =
      std::make_unique<CommandApp>(Command{.name = "ganymede", .summary = kSummary, .examples = kExamples}, nullptr);
  program->set_help_flag("-h,--help", "Print this help message and exit");
  program->formatter(std::make_shared<HelpFormatter>());
  program->set_version_flag("--version", "ganymede " GANYMEDE_VERSION);
  program->require_subcommand(1);
  program->failure_message([](const CLI::App* /*app*/, const CLI::Error& error) {
    return fmt::format("ganymede: {}; --help tells more\n", printable(error.what(), "\n"));
  });
  program->add_flag_callback(
      "--no-color", [&shared] { shared.color = false; }, "no colours");
  program->add_flag("-q,--quiet", shared.quiet, "no progress and no remarks on stderr");
  add_budget(Parser(*program));
  add_progress_fd(Parser(*program), shared);
  program->fallthrough();
  for (const Command& command : commands) add_command(Parser(*program), command, shared);
  return program;
}

void add_format(Parser command, Shared& shared, std::initializer_list<const char*> formats) {
  const std::vector<std::string> names(formats.begin(), formats.end());
  command.add_option("--format", shared.format, "how to print the result", one_of(names)).capture_default_str();
}

void add_output(Parser command, Shared& shared) {
  const auto refuse_empty = [](const std::string& text) { return text.empty() ? "the name of the file is empty" : ""; };
  command.add_option("-o,--output", shared.output, "write the result to this file instead of standard output",
                     refuse_empty);
}

void add_result(Parser command, Shared& shared, std::initializer_list<const char*> formats) {
  add_format(command, shared, formats);
  add_output(command, shared);
}

void add_jobs(Parser command, Shared& shared) {
  command.add_option("--jobs", shared.jobs,
                     "simulations at once (default: one for each core); results do not depend on it",
                     integer_between(1, 4096));
}

void add_seed(Parser command, std::uint64_t& seed, const std::string& description) {
  // The parser alone would wrap a negative number and clamp a large one.
  const auto exact = [](const std::string& text) {
    return parse_number<std::uint64_t>(text) ? ""
                                             : fmt::format("found {}, expected an integer from 0 to 2^64 - 1", text);
  };
  command.add_option("--seed", seed, description, exact).capture_default_str();
}

std::string not_empty(const std::string& text) { return text.empty() ? "found nothing, expected a value" : ""; }

Check positive_integer() {
  const auto check = [](const std::string& text) {
    const auto value = parse_number<std::int64_t>(text);
    return value && *value > 0 ? "" : fmt::format("found {}, expected a positive integer", text);
  };
  return Check::of_number(check, "POSITIVE");
}

Check positive_number() {
  const auto check = [](const std::string& text) {
    const auto value = parse_number<double>(text);
    return value && *value > 0 && std::isfinite(*value) ? "" : fmt::format("found {}, expected a number above 0", text);
  };
  return Check::of_number(check, "POSITIVE");
}

Check number_between(double min, double max) {
  const auto check = [min, max](const std::string& text) {
    const auto value = parse_number<double>(text);
    return value && *value >= min && *value <= max
               ? ""
               : fmt::format("found {}, expected a number from {:g} to {:g}", text, min, max);
  };
  return Check::of_number(check, fmt::format("FLOAT in [{:g} - {:g}]", min, max));
}

Check positive_count() {
  const auto rewrite = [](std::string& text) -> std::string {
    const auto count = parse_count(text);
    if (!count || *count < 1)
      return fmt::format("found {}, expected a positive integer, such as 50000000 or 50M", text);
    text = std::to_string(*count);
    return "";
  };
  return {rewrite, "COUNT"};
}

void add_set(Parser command, std::vector<std::string>& assignments) {
  command
      .add_option("--set", assignments,
                  "/json/pointer=value: replace a value of the file, or remove it with =null; relative paths start at "
                  "the working "
                  "directory")
      .type_name("POINTER=VALUE")
      .one_value_a_time();
}

std::vector<JsonOverride> parse_assignments(const std::vector<std::string>& assignments) {
  std::vector<JsonOverride> overrides;
  for (const auto& assignment : assignments) {
    const std::size_t sign = assignment.find('=');
    if (sign == std::string::npos || !assignment.starts_with('/'))
      throw ConfigError(
          fmt::format("--set {}: expected /json/pointer=value, for example /platform/nodes=2", assignment));
    overrides.push_back({assignment.substr(0, sign), assignment.substr(sign + 1)});
  }
  return overrides;
}

int jobs(const Shared& shared) { return shared.jobs > 0 ? shared.jobs : usable_cores(); }

void check_output(const Shared& shared) {
  if (!shared.output.empty()) check_writable(shared.output);
}

void check_second_output(const Shared& shared, const std::string& file) {
  if (file.empty()) return;
  check_writable(file);
  std::error_code failed;
  const bool is_stream = std::filesystem::exists(file, failed) && !std::filesystem::is_regular_file(file, failed);
  if (!shared.output.empty() && !is_stream && written_path(file) == written_path(shared.output))
    throw ConfigError(fmt::format("{}: found twice as an output, expected once", file));
}

void keep_input(const Shared& shared, const std::string& input) {
  std::error_code ignored;
  if (!shared.output.empty() && std::filesystem::equivalent(shared.output, input, ignored))
    throw ConfigError(fmt::format("{}: is the input too; write the result to another file", shared.output));
}

void emit(const Shared& shared, const std::string& text) {
  if (!shared.output.empty()) return write_file(shared.output, text);
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0)
    throw Failure("standard output cannot be written");
}

void remark(const Shared& shared, const std::string& text) {
  if (!shared.quiet) say(report::wrap_prose(printable(text, "\n") + "\n", remark_width()));
}

}  // namespace ganymede::cli
