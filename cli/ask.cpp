#include "cli/ask.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <iostream>
#include <stdexcept>

#include "cli/names.hpp"
#include "common/dates.hpp"
#include "common/errors.hpp"
#include "common/text.hpp"
#include "common/units.hpp"
#include "common/written.hpp"

namespace ganymede::cli {
namespace {

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

}  // namespace

bool may_ask(const std::vector<std::string>& words) {
  const bool plain = std::all_of(words.begin(), words.end(), [](const std::string& word) {
    return word == "--no-color" || word == "--quiet" || word == "-q";
  });
  return plain && ::isatty(STDIN_FILENO) != 0 && ::isatty(STDOUT_FILENO) != 0;
}

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

std::vector<std::string> ask_for_plan(std::vector<std::string> options) {
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

}  // namespace ganymede::cli
