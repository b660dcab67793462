#include "cli/arguments.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <span>

#include "common/errors.hpp"
#include "common/text.hpp"

namespace ganymede::cli {
namespace {

using Words = std::span<const std::string>;

/// Options of other programs, and what they are called here.
constexpr std::pair<std::string_view, std::string_view> kForeign[] = {
    {"-v", "--version"},     {"-V", "--version"}, {"-?", "--help"},      {"-help", "--help"},
    {"--silent", "--quiet"}, {"-j", "--jobs"},    {"--out", "--output"}, {"--gpus", "--max-gpus"}};

/// Words that are no commands, and what those who write them look for.
constexpr std::pair<std::string_view, std::string_view> kMeant[] = {{"gpus", "list gpus"},
                                                                    {"gpu", "list gpus"},
                                                                    {"instances", "list instances"},
                                                                    {"models", "list models"},
                                                                    {"recipes", "list recipes"},
                                                                    {"price", "catalog"},
                                                                    {"prices", "catalog"},
                                                                    {"cost", "plan"},
                                                                    {"estimate", "plan"},
                                                                    {"cheapest", "plan"},
                                                                    {"rent", "plan"},
                                                                    {"memory", "fits"},
                                                                    {"batch", "fits"},
                                                                    {"nccl", "check nccl-log"},
                                                                    {"nccl-log", "check nccl-log"},
                                                                    {"bandwidth", "check nccl-log"},
                                                                    {"slow", "why-slow"},
                                                                    {"scaling", "why-slow"},
                                                                    {"versus", "compare"},
                                                                    {"vs", "compare"},
                                                                    {"predict", "simulate"},
                                                                    {"run", "simulate"},
                                                                    {"bill", "watch"},
                                                                    {"init", "example"}};

/// The words from the first one on that should be a command, after the options that stand before it. Empty if there is
/// no such word, or if an unknown option comes first: the parser refuses that.
Words from_command(const CLI::App& app, Words words) {
  for (; !words.empty(); words = words.subspan(1)) {
    if (!words.front().starts_with('-')) return words;
    if (app.get_option_no_throw(words.front()) == nullptr) return {};
  }
  return {};
}

void check_words(const CLI::App& app, Words words) {
  words = from_command(app, words);
  if (words.empty()) return;
  const std::string& word = words.front();
  std::vector<std::string> names;
  for (const auto* command : app.get_subcommands({})) names.push_back(command->get_name());
  if (names.empty()) return;
  if (std::find(names.begin(), names.end(), word) != names.end())
    return check_words(*app.get_subcommand(word), words.subspan(1));
  auto guess = nearest(word, names);
  if (app.get_parent() == nullptr)
    for (const auto& [other, ours] : kMeant)
      if (word == other) guess = ours;
  throw ConfigError(fmt::format("no command \"{}{}\", expected {}{}",
                                app.get_parent() == nullptr ? "" : app.get_name() + " ", word, list_of(names),
                                guess ? fmt::format("; did you mean \"{}\"?", *guess) : ""));
}

/// Adds the options that may stand at the command which the parser has reached, its own and those of the program.
/// Returns the words of that command, each with a blank before it: " import layers".
std::string reached(const CLI::App& program, std::vector<std::string>& names) {
  std::string words;
  for (const CLI::App* app = &program;;) {
    for (const CLI::Option* option : app->get_options()) {
      if (option->get_group().empty()) continue;  // hidden
      for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
      for (const std::string& name : option->get_snames()) names.push_back("-" + name);
    }
    const auto below = app->get_subcommands();
    if (below.empty()) return words;
    app = below.front();
    words += " " + app->get_name();
  }
}

}  // namespace

std::vector<std::string> with_help_option(std::vector<std::string> words) {
  if (words.empty() || words.front() != "help") return words;
  words.erase(words.begin());
  words.emplace_back("--help");
  return words;
}

void check_command(const CLI::App& program, const std::vector<std::string>& words) { check_words(program, words); }

std::optional<std::string> unknown_option(const CLI::App& program) {
  std::vector<std::string> names;
  const std::string command = reached(program, names);
  for (const std::string& word : program.remaining(true)) {
    if (word.size() < 2 || !word.starts_with('-')) continue;
    const std::string name = word.substr(0, word.find('='));
    std::optional<std::string> meant;
    for (const auto& [foreign, ours] : kForeign)
      if (name == foreign && std::find(names.begin(), names.end(), ours) != names.end()) meant = ours;
    if (!meant && name.size() > 3) meant = nearest(name, names);
    return fmt::format("{}: no such option{}; `ganymede{} --help` lists them", name,
                       meant ? fmt::format(", did you mean {}?", *meant) : "", command);
  }
  return std::nullopt;
}

}  // namespace ganymede::cli
