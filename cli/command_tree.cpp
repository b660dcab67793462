#include "cli/command_tree.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <set>
#include <sstream>

#include "cli/help.hpp"
#include "cli/names.hpp"

namespace ganymede::cli {
namespace {

/// The members in the description of a CLI::IsMember, "{table,json}"; empty for any other description.
std::vector<std::string> members_of(const std::string& description) {
  if (!description.starts_with('{') || !description.ends_with('}')) return {};
  std::vector<std::string> members;
  std::istringstream items(description.substr(1, description.size() - 2));
  for (std::string item; std::getline(items, item, ',');) members.push_back(item);
  return members;
}

std::vector<CLI::Validator*> validators_of(CLI::Option& option) {
  std::vector<CLI::Validator*> all;
  try {
    for (int i = 0;; ++i) all.push_back(option.get_validator(i));
  } catch (const CLI::OptionNotFound&) {  // thrown beyond the last one; the parser does not say how many there are
  }
  return all;
}

OptionDoc read_option(CLI::Option& option) {
  OptionDoc doc;
  for (const auto& name : option.get_snames()) doc.names.push_back("-" + name);
  for (const auto& name : option.get_lnames()) doc.names.push_back("--" + name);
  if (doc.names.empty()) doc.place = option.get_name();
  doc.description = option.get_description();
  doc.default_value = option.get_default_str();
  doc.required = option.get_required();
  doc.list = option.get_delimiter() != '\0';
  doc.repeats = option.get_items_expected_max() >= CLI::detail::expected_max_vector_size;
  if (option.get_type_size() == 0) {
    doc.default_value.clear();
    return doc;
  }
  const std::string type = option.get_type_name();
  doc.value = type.substr(0, type.find(':'));
  bool suggested = false;
  for (const CLI::Validator* validator : validators_of(option)) {
    const Suggestion suggestion = read_suggestion(validator->get_name());
    suggested = suggested || suggestion.any;
    doc.files = doc.files || suggestion.files;
    doc.list = doc.list || suggestion.list;
    doc.offered.insert(doc.offered.end(), suggestion.names.begin(), suggestion.names.end());
    if (doc.checked.empty()) doc.checked = members_of(validator->get_description());
  }
  if (!doc.checked.empty()) doc.offered = doc.checked;
  // Text of which nothing is known may be the name of a file.
  if (!suggested && doc.checked.empty() && doc.value == "TEXT") doc.files = true;
  return doc;
}

CommandDoc read_command(CLI::App& app, const std::vector<std::string>& path, const std::vector<OptionDoc>& shared) {
  const Command& words = dynamic_cast<const CommandApp&>(app).words;
  CommandDoc doc{.path = path, .summary = words.summary, .examples = words.examples, .about = words.about};
  std::set<std::string> own;
  for (CLI::Option* option : app.get_options()) {
    if (option->get_group().empty()) continue;  // hidden
    OptionDoc read = read_option(*option);
    own.insert(read.names.begin(), read.names.end());
    (read.names.empty() ? doc.arguments : doc.options).push_back(std::move(read));
  }
  for (const OptionDoc& option : shared)
    if (!own.contains(option.names.front())) doc.options.push_back(option);
  std::vector<OptionDoc> inherited = shared;
  if (path.empty())
    for (const OptionDoc& option : doc.options)
      if (option.names.back() != "--version" && option.names.back() != "--help") inherited.push_back(option);
  for (CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (sub->get_group().empty()) continue;
    std::vector<std::string> below = path;
    below.push_back(sub->get_name());
    doc.commands.push_back(read_command(*sub, below, inherited));
  }
  return doc;
}

void gather(const CommandDoc& command, std::vector<const CommandDoc*>& all) {
  all.push_back(&command);
  for (const CommandDoc& below : command.commands) gather(below, all);
}

}  // namespace

std::string CommandDoc::name() const { return fmt::format("{}", fmt::join(path, " ")); }

CommandDoc read_commands(CLI::App& app) { return read_command(app, {}, {}); }

std::vector<const CommandDoc*> all_commands(const CommandDoc& command) {
  std::vector<const CommandDoc*> all;
  gather(command, all);
  return all;
}

}  // namespace ganymede::cli
