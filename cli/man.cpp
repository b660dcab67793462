// ganymede man: manual pages, made from the program's commands.

#include "cli/man.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <set>
#include <sstream>

#include "cli/help.hpp"
#include "cli/shared_options.hpp"
#include "common/errors.hpp"
#include "common/file.hpp"
#include "common/text.hpp"

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

namespace {

/// Escapes a line of text for roff, so that hyphens are copied as such and nothing is taken for a request or an escape.
std::string roff(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\')
      out += "\\e";
    else if (c == '-')
      out += "\\-";
    else if (c == '"')
      out += "\\(dq";  // also inside the arguments of a macro
    else
      out += c;
  }
  return out.starts_with('.') || out.starts_with('\'') ? "\\&" + out : out;
}

/// The lines as they are, not filled.
std::string verbatim(const std::string& lines) {
  std::string out = ".nf\n";
  std::istringstream in(lines);
  for (std::string line; std::getline(in, line);)
    out += line.empty() ? ".sp\n" : roff(line.starts_with("  ") ? line.substr(2) : line) + "\n";
  return out + ".fi\n";
}

/// The text with its paragraphs filled; indented lines stay as they are.
std::string prose(const std::string& text) {
  std::string out, kept;
  bool gap = false;
  const auto flush = [&] {
    if (!kept.empty()) out += ".RS 2\n" + verbatim(kept) + ".RE\n";
    kept.clear();
  };
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("  ")) {
      kept += line + "\n";
      continue;
    }
    flush();
    if (line.empty()) {
      gap = true;
      continue;
    }
    out += (std::exchange(gap, false) && !out.empty() ? ".PP\n" : "") + roff(line) + "\n";
  }
  flush();
  return out;
}

std::string page_name(const CommandDoc& command) {
  return command.path.empty() ? "ganymede" : fmt::format("ganymede-{}", fmt::join(command.path, "-"));
}

std::string invocation(const CommandDoc& command) {
  return command.path.empty() ? "ganymede" : "ganymede " + command.name();
}

std::string synopsis(const CommandDoc& command) {
  std::string out = fmt::format(".SH SYNOPSIS\n.B {}\n[\\fIOPTIONS\\fR]\n", roff(invocation(command)));
  for (const OptionDoc& argument : command.arguments)
    out += fmt::format("{}\\fI{}\\fR{}{}\n", argument.required ? "" : "[", roff(argument.place),
                       argument.repeats ? "..." : "", argument.required ? "" : "]");
  if (!command.commands.empty()) out += "\\fICOMMAND\\fR ...\n";
  return out;
}

std::string option_text(const OptionDoc& option) {
  std::string out = ".TP\n";
  if (option.names.empty()) {
    out += fmt::format("\\fI{}\\fR\n", roff(option.place));
  } else {
    for (const auto& name : option.names)
      out += fmt::format("{}\\fB{}\\fR", &name == option.names.data() ? "" : ", ", roff(name));
    if (!option.value.empty()) out += fmt::format(" \\fI{}\\fR", roff(option.value));
    out += "\n";
  }
  std::string notes;
  if (!option.checked.empty()) notes += fmt::format("; one of {}", fmt::join(option.checked, ", "));
  if (!option.default_value.empty()) notes += fmt::format("; default: {}", option.default_value);
  if (option.required && !option.names.empty()) notes += "; required";
  if (option.repeats && !option.names.empty()) notes += "; may be given several times";
  return out + roff(option.description + notes) + "\n";
}

constexpr std::pair<const char*, const char*> kEnvironment[] = {
    {"NO_COLOR", "if not empty, no colours"},
    {"TERM", "if dumb, no colours"},
    {"COLUMNS", "width to which tables and text are fitted on a terminal, instead of the terminal's own"},
    {"XDG_CACHE_HOME",
     "the built-in data set, trained classifiers and timed algorithms are kept in its folder ganymede; default: "
     "~/.cache"},
    {"GANYMEDE_NOW",
     "the time from which results count, such as 2026-12-01T09:00:00Z: the age of prices, a deadline without a start, "
     "the start of an exported bill; default: the system's clock"},
    {"GANYMEDE_MPI_PATIENCE",
     "seconds that a process of a training waits for others before it asks whether they live; default: 300"}};

std::string see_also(const CommandDoc& program, const CommandDoc& command) {
  std::string out = ".SH SEE ALSO\n";
  std::vector<const CommandDoc*> others;
  for (const CommandDoc* one : all_commands(program))
    if (command.path.empty() != one->path.empty()) others.push_back(one);
  if (!command.path.empty())
    for (const CommandDoc& below : command.commands) others.push_back(&below);
  for (const CommandDoc* other : others)
    out += fmt::format(".BR {} (1){}\n", roff(page_name(*other)), other == others.back() ? "" : " ,");
  return out;
}

std::string page(const CommandDoc& program, const CommandDoc& command) {
  const std::string name = page_name(command);
  std::string title = name;
  for (char& c : title) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  // The page has no date, so that a program writes the same page on every day.
  std::string out =
      fmt::format(".\\\" Written by `ganymede man`. Do not edit.\n.TH \"{}\" 1 \"\" \"ganymede {}\" \"Ganymede\"\n",
                  roff(title), GANYMEDE_VERSION);
  out += fmt::format(".SH NAME\n{} \\- {}\n{}", roff(name), roff(command.summary), synopsis(command));
  if (!command.about.empty()) out += ".SH DESCRIPTION\n" + prose(command.about);
  if (!command.commands.empty()) {
    out += ".SH COMMANDS\n";
    for (const CommandDoc& below : command.commands)
      out += fmt::format(".TP\n.BR {} (1)\n{}\n", roff(page_name(below)), roff(below.summary));
  }
  if (!command.arguments.empty()) out += ".SH ARGUMENTS\n";
  for (const OptionDoc& argument : command.arguments) out += option_text(argument);
  out += ".SH OPTIONS\n";
  for (const OptionDoc& option : command.options) out += option_text(option);
  if (!command.examples.empty()) out += ".SH EXAMPLES\n" + verbatim(command.examples);
  out += ".SH EXIT STATUS\n";
  for (const auto& [code, meaning] : kExitCodes)
    out += fmt::format(".TP\n.B {}\n{}\n", static_cast<int>(code), roff(std::string(meaning)));
  if (command.path.empty()) {
    out += ".SH ENVIRONMENT\n";
    for (const auto& [variable, meaning] : kEnvironment)
      out += fmt::format(".TP\n.B {}\n{}\n", variable, roff(meaning));
  }
  return out + see_also(program, command);
}

struct ManOptions {
  std::vector<std::string> command;
  std::string folder;
};

void run_man(const ManOptions& options, const CommandDoc& program, const Shared& shared) {
  if (!options.folder.empty()) {
    if (!options.command.empty() || !shared.output.empty())
      throw ConfigError("--folder: writes every page, expected no COMMAND and no --output");
    if (!std::filesystem::is_directory(options.folder))
      throw ConfigError(fmt::format("--folder {}: expected a directory", options.folder));
    for (const CommandDoc* command : all_commands(program))
      write_file(std::filesystem::path(options.folder) / (page_name(*command) + ".1"), page(program, *command));
    return;
  }
  check_output(shared);
  const std::string wanted = fmt::format("{}", fmt::join(options.command, " "));
  std::vector<std::string> names;
  for (const CommandDoc* command : all_commands(program)) {
    if (command->name() == wanted) return emit(shared, page(program, *command));
    if (!command->path.empty()) names.push_back(command->name());
  }
  throw ConfigError(
      fmt::format("man: no command \"{}\", expected {}{}", wanted, list_of(names), did_you_mean(wanted, names)));
}

void declare_man(Parser command, Shared& shared) {
  auto options = std::make_shared<ManOptions>();
  command.add_option("command", options->command, "the command; without it, the page of the program");
  command.add_option("--folder", options->folder, "write the pages of all commands into this directory");
  add_output(command, shared);
  command.callback(
      [options, command, &shared] { run_man(*options, read_commands(command.parent().parser()), shared); });
}

}  // namespace

Command man_command() {
  return {.name = "man",
          .summary = "manual pages, as man reads them",
          .examples =
              "  ganymede man | man -l -\n"
              "  ganymede man simulate | man -l -\n"
              "  ganymede man import layers -o ganymede-import-layers.1\n"
              "  ganymede man --folder ~/.local/share/man/man1          all of them\n",
          .about =
              "Prints the manual page of a command, or of the program. An installed package has all of them:\n"
              "man ganymede, man ganymede-simulate.",
          .declare = declare_man};
}

}  // namespace ganymede::cli
