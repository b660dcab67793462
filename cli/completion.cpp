// ganymede completion: scripts with which shells complete commands, options, names and files.

#include <fmt/format.h>

#include <memory>

#include "cli/command.hpp"
#include "cli/man.hpp"

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

/// The names of options, with blanks between them.
std::string all_names(const std::vector<OptionDoc>& options) {
  std::vector<std::string> names;
  for (const OptionDoc& option : options) names.insert(names.end(), option.names.begin(), option.names.end());
  return fmt::format("{}", fmt::join(names, " "));
}

/// Shell cases by which a script finds the command that was typed: each word that extends the command before it.
std::string path_cases(const CommandDoc& program) {
  return rendered(program,
                  [](const CommandDoc& command) {
                    return command.path.empty() ? "" : fmt::format(" | '{}'", command.name());
                  })
      .substr(3);
}

/// Shell cases of an option's names at a command.
std::string option_cases(const CommandDoc& command, const OptionDoc& option) {
  std::string cases;
  for (const auto& name : option.names)
    cases += fmt::format("{}'{}:{}'", cases.empty() ? "" : " | ", command.name(), name);
  return cases;
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

/// The values of an option.
std::string bash_values(const CommandDoc& command) {
  std::string out;
  for (const OptionDoc& option : command.options) {
    if (option.value.empty()) continue;
    const std::string offer = bash_offer(option);
    out += fmt::format("    {}) {}{}return ;;\n", option_cases(command, option), offer, offer.empty() ? "" : "; ");
  }
  return out;
}

/// The commands below a command, and its positional arguments.
std::string bash_places(const CommandDoc& command) {
  std::string out;
  std::vector<std::string> below;
  for (const CommandDoc& one : command.commands) below.push_back(one.path.back());
  if (!below.empty())
    out += fmt::format("    '{}:0') _ganymede_offer \"$cur\" '{}' ;;\n", command.name(), fmt::join(below, " "));
  for (std::size_t i = 0; i < command.arguments.size(); ++i)
    if (const OptionDoc& argument = command.arguments[i]; !argument.offered.empty())
      out += fmt::format("    '{}:'{} {} ;;\n", command.name(), argument.repeats ? "*)" : fmt::format("{})", i),
                         bash_offer(argument));
  return out;
}

/// The flags of a command, which take no value.
std::string bash_flags(const CommandDoc& command) {
  std::string flags;
  for (const OptionDoc& option : command.options)
    if (option.value.empty()) flags += (flags.empty() ? "" : " | ") + option_cases(command, option);
  return fmt::format("        {}) ;;\n", flags);
}

// ---- zsh

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

/// The function that completes a command.
std::string zsh_function(const CommandDoc& command) {
  std::string spec, cases;
  for (const OptionDoc& option : command.options) spec += zsh_option(option);
  for (const OptionDoc& argument : command.arguments)
    spec += fmt::format(" \\\n    '{}:{}:{}'",
                        argument.repeats    ? "*"
                        : argument.required ? ""
                                            : ":",
                        zsh_text(argument.place), zsh_values(argument));
  std::string out = fmt::format("\n{}() {{\n", identifier(command));
  if (command.commands.empty()) {
    return out + fmt::format("  _arguments -s{}\n}}\n", spec);
  }
  out += "  local context state state_descr line curcontext=$curcontext\n  typeset -A opt_args\n";
  out += fmt::format("  _arguments -C -s{} \\\n    '1:command:->command' '*::argument:->argument'\n", spec);
  out += "  case $state in\n    command)\n      local -a commands=(\n";
  for (const CommandDoc& below : command.commands) {
    out += fmt::format("        {}\n", quoted(replaced(below.path.back() + ":" + below.summary, "\\", "\\\\")));
    cases += fmt::format("        {}) {} ;;\n", below.path.back(), identifier(below));
  }
  return out +
         "      )\n      _describe -t commands command commands\n      ;;\n    argument)\n      case $line[1] in\n" +
         cases + "      esac\n      ;;\n  esac\n}\n";
}

// ---- fish

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

std::string fish_lines(const CommandDoc& command) {
  const std::string at = fmt::format("complete -c ganymede -n '__ganymede_at {}'", command.name());
  std::string out = "\n";
  for (const CommandDoc& below : command.commands)
    out += fmt::format("{} -f -a {} -d {}\n", at, below.path.back(), fish_quoted(below.summary));
  for (const OptionDoc& argument : command.arguments)
    if (!argument.offered.empty()) {
      // Files are offered only if the option accepts them.
      const bool names_alone = command.arguments.size() == 1 && !argument.files;
      out += fmt::format("{}{} -a {}\n", at, names_alone ? " -f" : "",
                         fish_quoted(fmt::format("{}", fmt::join(argument.offered, " "))));
    }
  for (const OptionDoc& option : command.options) {
    std::string names;
    for (const auto& name : option.names)
      names += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
    out += fmt::format("{}{}{} -d {}\n", at, names, option.value.empty() ? "" : fish_values(option),
                       fish_quoted(option.description));
  }
  return out;
}

}  // namespace

std::string bash_completion(const CommandDoc& program) {
  std::string out = kBashHead + rendered(program, bash_flags);
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
  out += rendered(program, bash_values) + "  esac\n  if [[ $cur == -* ]]; then\n    case \"$path\" in\n";
  out += rendered(program, [](const CommandDoc& command) {
    return fmt::format("      '{}') _ganymede_offer \"$cur\" '{}' ;;\n", command.name(), all_names(command.options));
  });
  return out + "    esac\n    return\n  fi\n  case \"$path:$places\" in\n" + rendered(program, bash_places) +
         "  esac\n}\n\ncomplete -o bashdefault -o default -F _ganymede ganymede\n";
}

std::string zsh_completion(const CommandDoc& program) {
  return "#compdef ganymede\n# zsh completion for ganymede, as `ganymede completion zsh` prints it.\n" +
         rendered(program, zsh_function) + "\n_ganymede \"$@\"\n";
}

std::string fish_completion(const CommandDoc& program) {
  std::string out = kFishHead + replaced(path_cases(program), " | ", " ");
  out += R"SH(
                set path $path $word
        end
    end
    test "$path" = "$argv"
end
)SH";
  return out + rendered(program, fish_lines);
}

namespace {

struct Shell {
  const char* name;
  std::string (*render)(const CommandDoc& program);
};
constexpr Shell kShells[] = {{"bash", bash_completion}, {"zsh", zsh_completion}, {"fish", fish_completion}};

void declare_completion(Parser command, Shared& shared) {
  auto shell = std::make_shared<std::string>();
  std::vector<std::string> names;
  for (const Shell& known : kShells) names.emplace_back(known.name);
  command.add_option("shell", *shell, "bash, zsh or fish").required().check(one_of(names));
  add_output(command, shared);
  command.callback([shell, command, &shared] {
    check_output(shared);
    const CommandDoc program = read_commands(command.parent().parser());
    for (const Shell& known : kShells)
      if (*shell == known.name) emit(shared, known.render(program));
  });
}

}  // namespace

Command completion_command() {
  return {.name = "completion",
          .summary = "completions for a shell: bash, zsh or fish",
          .examples =
              "  source <(ganymede completion bash)                                     for this shell\n"
              "  ganymede completion bash -o ~/.local/share/bash-completion/completions/ganymede\n"
              "  ganymede completion zsh -o ~/.zfunc/_ganymede                          a folder of $fpath\n"
              "  ganymede completion fish -o ~/.config/fish/completions/ganymede.fish\n",
          .about =
              "Prints a script that completes commands, options, the names that an option takes, and files. An\n"
              "installed package has the scripts already.",
          .declare = declare_completion};
}

}  // namespace ganymede::cli
