#pragma once
// Names that shell completions offer for an option.

#include <string>
#include <string_view>
#include <vector>

#include "cli/command.hpp"

namespace ganymede::cli {

/// A validator for an option's check() that accepts everything and is not shown in the help. The words of `spec` are
/// names, "@TOPIC" for the names of a topic, "@files" if files are offered too, and "@list" if the value is a list with
/// commas. For example "builtin @files". Topics are those of `ganymede list`, and rented-gpus (of the catalogs, with
/// their families), sheets (GPUs whose kernel times are known), studies, layers, planned (models of `plan`), losses and
/// topics.
Check suggest(const std::string& spec);

struct Suggestion {
  bool any = false;  ///< the validator is one of suggest()
  std::vector<std::string> names;
  bool files = false, list = false;
};
/// The suggestions of the validator of that name; nothing if suggest() did not make it.
Suggestion read_suggestion(const std::string& validator_name);

/// Models that `plan --model` takes: those with a recorded trace, then the lists of layers.
std::vector<std::string> planned_models();

/// The topics of `ganymede list`, and the names of one topic without their summaries. Both are defined in cli/list.cpp.
std::vector<std::string> listed_topics();
std::vector<std::string> listed_names(std::string_view topic);

}  // namespace ganymede::cli
