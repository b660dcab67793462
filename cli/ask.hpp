#pragma once
// The program without arguments on a terminal: it asks what to train, for how many images and by when or for how much,
// and answers with a plan.

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace ganymede::cli {

/// True if the arguments name no command and ask for nothing, and stdin and stdout are terminals, so that somebody can
/// be asked.
bool may_ask(const std::vector<std::string>& words);

/// Prints a question and returns the answer, without blanks around it; nullopt at the end of the input.
using Asker = std::function<std::optional<std::string>(const std::string& question)>;

/// Asks, a question again after an answer that cannot be understood, and returns the arguments of the plan: "plan",
/// "--model", "dcgan-64", … An empty answer takes the default, which the question shows. Throws ConfigError at the end
/// of the input.
std::vector<std::string> ask_for_plan(const Asker& ask);
/// The same on the terminal, behind the options that were given. It shows the command, for the next time.
std::vector<std::string> ask_for_plan(std::vector<std::string> options);

}  // namespace ganymede::cli
