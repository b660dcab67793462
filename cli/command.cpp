#include "cli/command.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cstdio>
#include <filesystem>
#include <system_error>

#include "cli/terminal.hpp"
#include "common/errors.hpp"
#include "common/file.hpp"
#include "common/process.hpp"

namespace ganymede::cli {
namespace {

class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_description(const CLI::App* app) const override {
    const std::string text = app->get_description();
    return app->get_parent() == nullptr ? text + "\n" : text.substr(text.find('\n') + 1) + "\n\n";
  }
  std::string make_subcommand(const CLI::App* sub) const override {
    const std::string text = sub->get_description();
    return fmt::format("  {:<12}{}\n", sub->get_name(), text.substr(0, text.find('\n')));
  }
};

}  // namespace

std::shared_ptr<CLI::FormatterBase> help_formatter() { return std::make_shared<HelpFormatter>(); }

void add_format(CLI::App& command, Shared& shared, std::initializer_list<const char*> formats) {
  const std::vector<std::string> names(formats.begin(), formats.end());
  command.add_option("--format", shared.format, "how to print the result")
      ->check(CLI::IsMember(names))
      ->capture_default_str();
}

void add_output(CLI::App& command, Shared& shared) {
  const auto refuse_empty = [](const std::string& text) { return text.empty() ? "the name of the file is empty" : ""; };
  command.add_option("-o,--output", shared.output, "write the result to this file instead of standard output")
      ->check(refuse_empty);
}

void add_jobs(CLI::App& command, Shared& shared) {
  command.add_option("--jobs", shared.jobs, "simulations at once (default: one a core); results do not depend on it")
      ->check(CLI::Range(1, 4096));
}

void add_seed(CLI::App& command, std::uint64_t& seed, const std::string& description) {
  // The parser would wrap a negative number and clamp a large one.
  const auto exact = [](const std::string& text) {
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc{} && end == text.data() + text.size()
               ? ""
               : fmt::format("found {}, expected an integer from 0 to 2^64 - 1", text);
  };
  command.add_option("--seed", seed, description)->check(exact)->capture_default_str();
}

void add_set(CLI::App& command, std::vector<std::string>& assignments) {
  command
      .add_option("--set", assignments,
                  "/json/pointer=value: replace a value of the file, or remove it with =null; relative paths start at "
                  "the working "
                  "directory")
      ->type_name("POINTER=VALUE")
      ->allow_extra_args(false);
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
  if (!shared.quiet) say(wrap_prose(text + "\n", remark_width()));
}

}  // namespace ganymede::cli
