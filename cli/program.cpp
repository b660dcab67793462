#include "cli/program.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <new>
#include <span>
#include <stdexcept>
#include <system_error>

#include "cli/progress.hpp"
#include "cli/shared_options.hpp"
#include "common/budget.hpp"
#include "common/dates.hpp"
#include "common/errors.hpp"
#include "common/printable.hpp"
#include "common/text.hpp"
#include "common/units.hpp"
#include "common/written.hpp"
#include "rehearsal/local_network.hpp"

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

/// Throws ConfigError with the nearest command for a word that is no command. The parser only says that one is missing.
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

/// The words with "help COMMAND" written as "COMMAND --help", and "help" alone as "--help".
std::vector<std::string> with_help_option(std::vector<std::string> words) {
  if (words.empty() || words.front() != "help") return words;
  words.erase(words.begin());
  words.emplace_back("--help");
  return words;
}

/// After the parser has refused the words: the message for the first one that looks like an option and is none, with
/// the option that it may stand for; nullopt if there is no such word.
std::optional<std::string> unknown_option(const CLI::App& program) {
  std::vector<std::string> names;
  const std::string command = reached(program, names);
  for (const std::string& word : program.remaining(true)) {
    if (word.size() < 2 || !word.starts_with('-')) continue;
    const std::string name = word.substr(0, word.find('='));
    const auto has = [&](std::string_view option) {
      return std::find(names.begin(), names.end(), option) != names.end();
    };
    if (name == "--recipe" && has("--set"))
      return fmt::format(
          "{}: no such option; the file names a recipe as \"recipe\" in its \"workload\", in place of \"trace\": "
          "--set /workload/trace=null --set /workload/recipe=NAME",
          name);
    std::optional<std::string> meant;
    for (const auto& [foreign, ours] : kForeign)
      if (name == foreign && has(ours)) meant = ours;
    if (!meant && name.size() > 3) meant = nearest(name, names);
    return fmt::format("{}: no such option{}; `ganymede{} --help` lists them", name,
                       meant ? fmt::format(", did you mean {}?", *meant) : "", command);
  }
  return std::nullopt;
}

constexpr const char* kModel = "dcgan-64";
constexpr const char* kImages = "10M";
constexpr const char* kGoal = "none";

std::string trimmed(const std::string& text) {
  const std::size_t begin = text.find_first_not_of(" \t\r");
  return begin == std::string::npos ? "" : text.substr(begin, text.find_last_not_of(" \t\r") + 1 - begin);
}

/// Asks until `accepts` returns an empty text; otherwise it returns what is wrong, which the next question repeats.
std::string asked(const Asker& ask, const std::string& question, const std::string& otherwise,
                  const std::function<std::string(const std::string&)>& accepts) {
  for (std::string wrong;;) {
    const auto answer = ask(wrong + fmt::format("{} [{}]: ", question, otherwise));
    if (!answer) throw ConfigError("the questions were not answered; `ganymede plan --help` shows the same as flags");
    const std::string text = answer->empty() ? otherwise : *answer;
    const std::string reason = accepts(text);
    if (reason.empty()) return text;
    wrong = fmt::format("  {}\n", reason);
  }
}

std::string check_model(const std::string& model, const std::vector<std::string>& models) {
  if (std::find(models.begin(), models.end(), model) != models.end()) return "";
  const auto close = nearest(model, models);
  return fmt::format("\"{}\" is not among {}{}", model, list_of(models),
                     close ? fmt::format("; did you mean {}?", *close) : "");
}

bool is_duration(const std::string& text) {
  try {
    return parse_quantity<Seconds>(text).si > 0;
  } catch (const std::invalid_argument&) {
    return parse_time(text).has_value();
  }
}

bool is_money(const std::string& text) {
  return text.starts_with("$") || text.ends_with("$") || text.ends_with("USD") || text.ends_with("usd");
}

std::string check_goal(const std::string& goal) {
  if (goal == kGoal || is_money(goal) || is_duration(goal)) return "";
  return fmt::format("\"{}\" is neither a duration nor an amount: write for example 60h, 3d or 500USD", goal);
}

/// True if the arguments name no command and ask for nothing, and stdin and stdout are terminals, so that somebody can
/// be asked.
bool may_ask(const std::vector<std::string>& words) {
  const bool plain = std::all_of(words.begin(), words.end(), [](const std::string& word) {
    return word == "--no-color" || word == "--quiet" || word == "-q";
  });
  return plain && ::isatty(STDIN_FILENO) != 0 && ::isatty(STDOUT_FILENO) != 0;
}

}  // namespace

std::vector<std::string> ask_for_plan(const Asker& ask) {
  const std::vector<std::string> models = planned_models();
  const std::string model = asked(ask, "Which model do you train", kModel,
                                  [&](const std::string& answer) { return check_model(answer, models); });
  const std::string images = asked(ask, "On how many images", kImages, [](const std::string& answer) {
    const auto count = parse_count(answer);
    return count && *count > 0 ? "" : fmt::format("\"{}\" is no number of images: write for example 50M", answer);
  });
  const std::string goal = asked(ask, "By when, or for how much (60h, 500USD)", kGoal, check_goal);
  std::vector<std::string> words = {"plan", "--model", model, "--images", images};
  if (goal != kGoal) words.insert(words.end(), {is_money(goal) ? "--budget" : "--deadline", goal});
  return words;
}

namespace {

/// The arguments of a plan that is asked for on the terminal, behind the options that were given. It shows the command,
/// for the next time.
std::vector<std::string> ask_on_terminal(std::vector<std::string> options) {
  std::fputs(
      "Ganymede says what to rent for a training. Three questions; Enter takes what stands in [ ], and\n"
      "`ganymede --help` shows everything else.\n\n",
      stdout);
  const auto words = ask_for_plan([](const std::string& question) -> std::optional<std::string> {
    std::fputs(question.c_str(), stdout);
    std::fflush(stdout);
    std::string line;
    if (!std::getline(std::cin, line)) return std::nullopt;
    return trimmed(line);
  });
  std::string command = "ganymede";
  for (const std::string& word : words)
    command += word.find_first_of(" $") == std::string::npos ? " " + word : " '" + word + "'";
  std::fputs(fmt::format("\n{}\n\n", command).c_str(), stdout);
  std::fflush(stdout);
  options.insert(options.end(), words.begin(), words.end());
  return options;
}

/// Throws ConfigError for an argument that is not UTF-8: names of files and values of flags become part of results.
/// Also for a list of nothing, behind which the parser would take the next flag for its value.
void check_values(const std::vector<std::string>& words) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string flag = i > 0 && words[i - 1].starts_with("--") ? words[i - 1] + " " : "";
    const std::string_view value = std::string_view(words[i]).substr(words[i].find('=') + 1);
    const bool is_flag = words[i].starts_with("--") && words[i].find('=') != std::string::npos;
    if ((is_flag || !flag.empty()) && !value.empty() && value.find_first_not_of(',') == value.npos)
      throw ConfigError(fmt::format("{}{}: found no value between the commas", flag, printable(words[i])));
    if (is_utf8(words[i])) continue;
    throw ConfigError(fmt::format("{}{}: is not UTF-8", flag, printable(words[i])));
  }
}

/// "Could not convert: --count = x", as the parser says it, with what is expected.
std::string not_converted(const std::string& said) {
  const std::size_t name = said.find("--"), equals = said.find(" = ");
  if (name == said.npos || equals == said.npos || name > equals) return said;
  const std::string value = said.substr(equals + 3);
  const bool digits = !value.empty() && value.find_first_not_of("0123456789") == value.npos;
  const bool fraction = value.find_first_of(".eE") != value.npos;
  return fmt::format("{}: found {}, expected {}", said.substr(name, equals - name), value,
                     digits     ? "a smaller integer"
                     : fraction ? "a number that is written as an integer"
                                : "a number");
}

}  // namespace

int print_error(ExitCode code, const char* message) {
  say(report::wrap_prose(fmt::format("ganymede: {}\n", printable(message, "\n")), remark_width()));
  return static_cast<int>(code);
}

namespace {

/// A path that the library did not find is the user's mistake, such as a link that leads to itself.
int print_path_error(const std::filesystem::filesystem_error& error) {
  bool users = false;
  for (const std::errc code :
       {std::errc::too_many_symbolic_link_levels, std::errc::filename_too_long, std::errc::not_a_directory,
        std::errc::no_such_file_or_directory, std::errc::permission_denied})
    users = users || error.code() == code;
  return print_error(users ? ExitCode::invalid : ExitCode::failure,
                     (error.path1().string() + ": " + error.code().message()).c_str());
}

}  // namespace

int run_command_line(std::vector<std::string> words) {
  Shared shared;
  shared.color = may_color();
  // The version needs no command, and the options of all take as long to declare as everything else that the program
  // does to begin.
  const bool only_version = words == std::vector<std::string>{"--version"};
  const auto program = make_program(only_version ? std::span<const Command>() : commands(), shared);
  words = with_help_option(std::move(words));
  try {
    check_values(words);
    if (may_ask(words)) words = ask_on_terminal(std::move(words));
    check_words(*program, words);
    std::vector<std::string> reversed(words.rbegin(), words.rend());  // as the parser takes them
    program->parse(std::move(reversed));
    return static_cast<int>(shared.exit_code);
  } catch (const CLI::Success& success) {  // --help and --version
    return program->exit(success);
  } catch (const CLI::ConversionError& error) {
    return print_error(ExitCode::invalid, not_converted(error.what()).c_str());
  } catch (const CLI::ParseError& error) {
    // The library's codes for errors are 100 and above.
    if (const auto message = unknown_option(*program)) return print_error(ExitCode::invalid, message->c_str());
    program->exit(error);
    return static_cast<int>(ExitCode::invalid);
  } catch (const ConfigError& error) {
    return print_error(ExitCode::invalid, error.what());
  } catch (const Infeasible& error) {
    return print_error(ExitCode::infeasible, error.what());
  } catch (const BudgetExceeded& error) {
    return print_error(ExitCode::infeasible, error.what());
  } catch (const rehearsal::Interrupted& error) {
    return print_error(ExitCode::interrupted, error.what());
  } catch (const std::bad_alloc& error) {
    const std::string exceeded = memory_budget_exceeded();
    if (exceeded.empty()) return print_error(ExitCode::failure, error.what());
    return print_error(ExitCode::infeasible, exceeded.c_str());
  } catch (const std::filesystem::filesystem_error& error) {
    return print_path_error(error);
  } catch (const std::exception& error) {
    return print_error(ExitCode::failure, error.what());
  }
}

}  // namespace ganymede::cli
