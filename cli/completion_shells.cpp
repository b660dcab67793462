#include "cli/completion_shells.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace ganymede::cli {
namespace {

std::string replaced(std::string text, std::string_view what, std::string_view with) {
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += with.size())
    text.replace(at, what.size(), with);
  return text;
}

/// The text in single quotes of a POSIX shell.
std::string quoted(const std::string& text) { return "'" + replaced(text, "'", R"('\'')") + "'"; }

/// The name of a command for use in the name of a function: "import_layers".
std::string identifier(const CommandDoc& command) {
  std::string name = "_ganymede";
  for (const auto& part : command.path) name += "_" + replaced(part, "-", "_");
  return name;
}

std::vector<std::string> all_names(const std::vector<OptionDoc>& options) {
  std::vector<std::string> names;
  for (const OptionDoc& option : options) names.insert(names.end(), option.names.begin(), option.names.end());
  return names;
}

/// Shell cases by which a script finds the command that was typed: each word that extends the command before it.
std::string path_cases(const CommandDoc& program) {
  std::string paths;
  for (const CommandDoc* command : all_commands(program))
    if (!command->path.empty()) paths += fmt::format("{}'{}'", paths.empty() ? "" : " | ", command->name());
  return paths;
}

// ---- bash

constexpr const char* kBashHead = R"SH(# bash completion for ganymede, as `ganymede completion bash` prints it.

_ganymede_offer() {  # $1: the word, $2: names, $3: files too, $4: several with commas
  local word=$1 before=
  if [[ -n $4 && $word == *,* ]]; then
    before=${word%,*},
    word=${word##*,}
  fi
  mapfile -t COMPREPLY < <(compgen -P "$before" -W "$2" -- "$word")
  [[ -z $4 ]] || compopt -o nospace 2>/dev/null
  if [[ -n $3 ]]; then
    local -a files
    mapfile -t files < <(compgen -f -- "$1")
    COMPREPLY+=("${files[@]}")
    [[ ${#files[@]} -eq 0 ]] || compopt -o filenames 2>/dev/null
  fi
}

_ganymede() {
  local cur=${COMP_WORDS[COMP_CWORD]} option='' path='' word
  COMPREPLY=()
  # "--option=value" is three words.
  if [[ $cur == '=' ]]; then
    option=${COMP_WORDS[COMP_CWORD - 1]} cur=''
  elif [[ ${COMP_WORDS[COMP_CWORD - 1]} == '=' ]]; then
    option=${COMP_WORDS[COMP_CWORD - 2]}
  elif [[ ${COMP_WORDS[COMP_CWORD - 1]} == -* ]]; then
    option=${COMP_WORDS[COMP_CWORD - 1]}
  fi
  local places=0 skip=''
  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    if [[ $word == '=' ]]; then  # what follows is the option's
      skip=yes
      continue
    elif [[ -n $skip ]]; then
      skip=''
      continue
    elif [[ $word == -* ]]; then
      case "$path:$word" in
)SH";

/// A call of _ganymede_offer. With nothing to offer, readline completes names of files.
std::string bash_offer(const OptionDoc& option) {
  if (option.offered.empty()) return option.files ? "" : "COMPREPLY=()";
  return fmt::format("_ganymede_offer \"$cur\" {} '{}' '{}'", quoted(fmt::format("{}", fmt::join(option.offered, " "))),
                     option.files ? "files" : "", option.list ? "list" : "");
}

}  // namespace

std::string bash_completion(const CommandDoc& program) {
  std::string out = kBashHead;
  for (const CommandDoc* command : all_commands(program)) {
    std::string flags;
    for (const OptionDoc& option : command->options)
      for (const auto& name : option.names)
        if (option.value.empty()) flags += fmt::format("{}'{}:{}'", flags.empty() ? "" : " | ", command->name(), name);
    out += fmt::format("        {}) ;;\n", flags);
  }
  out += R"SH(        *) skip=yes ;;
      esac
      continue
    fi
    case "${path:+$path }$word" in
)SH";
  out += fmt::format("      {}) path=${{path:+$path }}$word places=0 ;;\n", path_cases(program));
  out += R"SH(      *) places=$((places + 1)) ;;
    esac
  done
  case "$path:$option" in
)SH";
  for (const CommandDoc* command : all_commands(program))
    for (const OptionDoc& option : command->options) {
      if (option.value.empty()) continue;
      std::string patterns;
      for (const auto& name : option.names)
        patterns += fmt::format("{}'{}:{}'", patterns.empty() ? "" : " | ", command->name(), name);
      const std::string offer = bash_offer(option);
      out += fmt::format("    {}) {}{}return ;;\n", patterns, offer, offer.empty() ? "" : "; ");
    }
  out += "  esac\n  if [[ $cur == -* ]]; then\n    case \"$path\" in\n";
  for (const CommandDoc* command : all_commands(program))
    out += fmt::format("      '{}') _ganymede_offer \"$cur\" '{}' ;;\n", command->name(),
                       fmt::join(all_names(command->options), " "));
  out += "    esac\n    return\n  fi\n  case \"$path:$places\" in\n";
  for (const CommandDoc* command : all_commands(program)) {
    std::vector<std::string> below;
    for (const CommandDoc& one : command->commands) below.push_back(one.path.back());
    if (!below.empty())
      out += fmt::format("    '{}:0') _ganymede_offer \"$cur\" '{}' ;;\n", command->name(), fmt::join(below, " "));
    for (std::size_t i = 0; i < command->arguments.size(); ++i)
      if (const OptionDoc& argument = command->arguments[i]; !argument.offered.empty())
        out += fmt::format("    '{}:'{} {} ;;\n", command->name(), argument.repeats ? "*)" : fmt::format("{})", i),
                           bash_offer(argument));
  }
  return out + "  esac\n}\n\ncomplete -o bashdefault -o default -F _ganymede ganymede\n";
}

// ---- zsh

namespace {

/// The text for a specification of _arguments, inside single quotes.
std::string zsh_text(const std::string& text) {
  std::string out = replaced(text, "\\", "\\\\");
  for (const char* special : {"[", "]", ":"}) out = replaced(out, special, std::string("\\") + special);
  return replaced(out, "'", R"('\'')");
}

std::string zsh_values(const OptionDoc& option) {
  const std::string names = fmt::format("{}", fmt::join(option.offered, " "));
  if (option.offered.empty()) return option.files ? "_files" : " ";
  if (option.list && option.files) return fmt::format("{{_sequence compadd - {}; _files}}", names);
  if (option.list) return fmt::format("_sequence compadd - {}", names);
  return option.files ? fmt::format("{{compadd - {}; _files}}", names) : fmt::format("({})", names);
}

std::string zsh_option(const OptionDoc& option) {
  const std::string value =
      option.value.empty() ? "" : fmt::format(":{}:{}", zsh_text(option.value), zsh_values(option));
  const std::string what = fmt::format("[{}]{}", zsh_text(option.description), value);
  if (option.repeats) {
    std::string lines;
    for (const auto& name : option.names) lines += fmt::format(" \\\n    '*{}{}'", name, what);
    return lines;
  }
  if (option.names.size() == 1) return fmt::format(" \\\n    '{}{}'", option.names[0], what);
  return fmt::format(" \\\n    '({})'{{{}}}'{}'", fmt::join(option.names, " "), fmt::join(option.names, ","), what);
}

}  // namespace

std::string zsh_completion(const CommandDoc& program) {
  std::string out = "#compdef ganymede\n# zsh completion for ganymede, as `ganymede completion zsh` prints it.\n";
  for (const CommandDoc* command : all_commands(program)) {
    std::string spec, cases;
    for (const OptionDoc& option : command->options) spec += zsh_option(option);
    for (const OptionDoc& argument : command->arguments)
      spec += fmt::format(" \\\n    '{}:{}:{}'",
                          argument.repeats    ? "*"
                          : argument.required ? ""
                                              : ":",
                          zsh_text(argument.place), zsh_values(argument));
    out += fmt::format("\n{}() {{\n", identifier(*command));
    if (command->commands.empty()) {
      out += fmt::format("  _arguments -s{}\n}}\n", spec);
      continue;
    }
    out += "  local context state state_descr line curcontext=$curcontext\n  typeset -A opt_args\n";
    out += fmt::format("  _arguments -C -s{} \\\n    '1:command:->command' '*::argument:->argument'\n", spec);
    out += "  case $state in\n    command)\n      local -a commands=(\n";
    for (const CommandDoc& below : command->commands) {
      out += fmt::format("        {}\n", quoted(replaced(below.path.back() + ":" + below.summary, "\\", "\\\\")));
      cases += fmt::format("        {}) {} ;;\n", below.path.back(), identifier(below));
    }
    out += "      )\n      _describe -t commands command commands\n      ;;\n    argument)\n      case $line[1] in\n" +
           cases + "      esac\n      ;;\n  esac\n}\n";
  }
  return out + "\n_ganymede \"$@\"\n";
}

// ---- fish

namespace {

std::string fish_quoted(const std::string& text) {
  return "'" + replaced(replaced(text, "\\", "\\\\"), "'", "\\'") + "'";
}

std::string fish_values(const OptionDoc& option) {
  const std::string names = fmt::format("{}", fmt::join(option.offered, " "));
  if (option.offered.empty()) return option.files ? " -r -F" : " -x";
  const std::string values = option.list ? fmt::format("(__fish_append , {})", names) : names;
  return fmt::format(" -r{} -a {}", option.files ? " -F" : " -f", fish_quoted(values));
}

constexpr const char* kFishHead = R"SH(# fish completion for ganymede, as `ganymede completion fish` prints it.

# Whether the command line is at the command of these words.
function __ganymede_at
    set -l path
    for word in (commandline -opc)[2..-1]
        switch (string join -- ' ' $path $word)
            case )SH";

}  // namespace

std::string fish_completion(const CommandDoc& program) {
  std::string out = kFishHead + replaced(path_cases(program), " | ", " ");
  out += R"SH(
                set path $path $word
        end
    end
    test "$path" = "$argv"
end
)SH";
  for (const CommandDoc* command : all_commands(program)) {
    const std::string at = fmt::format("complete -c ganymede -n '__ganymede_at {}'", command->name());
    out += "\n";
    for (const CommandDoc& below : command->commands)
      out += fmt::format("{} -f -a {} -d {}\n", at, below.path.back(), fish_quoted(below.summary));
    for (const OptionDoc& argument : command->arguments)
      if (!argument.offered.empty()) {
        // Files are offered only if the option accepts them.
        const bool names_alone = command->arguments.size() == 1 && !argument.files;
        out += fmt::format("{}{} -a {}\n", at, names_alone ? " -f" : "",
                           fish_quoted(fmt::format("{}", fmt::join(argument.offered, " "))));
      }
    for (const OptionDoc& option : command->options) {
      std::string names;
      for (const auto& name : option.names)
        names += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
      out += fmt::format("{}{}{} -d {}\n", at, names, option.value.empty() ? "" : fish_values(option),
                         fish_quoted(option.description));
    }
  }
  return out;
}

}  // namespace ganymede::cli
