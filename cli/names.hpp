#pragma once
// Names that are worth offering where an option takes one: for shell completions.

#include <string>
#include <string_view>
#include <vector>

#include "cli/command.hpp"

namespace ganymede::cli {

/// To be given to an option's check(): refuses nothing, and shows in no help. `spec` has words between spaces: a name,
/// "@TOPIC" for the names of a topic, "@files" for files too, "@list" where several may stand with commas. Topics:
/// those of `ganymede list`, and instances, gpus, regions, studies, layers, losses, topics.
CLI::Validator suggest(const std::string& spec);

struct Suggestion {
  bool any = false;  ///< there is one
  std::vector<std::string> names;
  bool files = false, list = false;
};
/// What a validator of that name suggests; nothing where suggest() did not make it.
Suggestion read_suggestion(const std::string& validator_name);

/// The names of a topic of `ganymede list`, without their summaries; cli/list.cpp.
std::vector<std::string> listed_topics();
std::vector<std::string> listed_names(std::string_view topic);

}  // namespace ganymede::cli
