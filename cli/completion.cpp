// ganymede completion: scripts by which shells complete commands, options, names and files. A script asks the program.

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "cli/command.hpp"
#include "cli/man.hpp"
#include "common/text.hpp"

namespace ganymede::cli {
namespace {

/// The script gets a first line, which may say "files" (names of files may stand there, too) and "list" (more may
/// follow the name, after a comma), and then a name a line.
constexpr const char* kBash = R"SH(# bash completion for ganymede, as `ganymede completion bash` prints it.

_ganymede() {
  local offered files=()
  mapfile -t offered < <("${COMP_WORDS[0]}" completion bash -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
  COMPREPLY=("${offered[@]:1}")
  if [[ ${offered[0]} == *files* ]]; then
    mapfile -t files < <(compgen -f -- "${COMP_WORDS[COMP_CWORD]}")
    COMPREPLY+=("${files[@]}")
    [[ ${#files[@]} -eq 0 ]] || compopt -o filenames 2>/dev/null
  fi
  [[ ${offered[0]} != *list* ]] || compopt -o nospace 2>/dev/null
}

complete -o bashdefault -o default -F _ganymede ganymede
)SH";

constexpr const char* kZsh = R"SH(#compdef ganymede
# zsh completion for ganymede, as `ganymede completion zsh` prints it.

_ganymede() {
  local -a offered more
  offered=("${(@f)$($words[1] completion zsh -- "${(@)words[2,CURRENT]}" 2>/dev/null)}")
  local kind=$offered[1]
  shift offered
  [[ $kind != *list* ]] || more=(-S '')
  [[ ${#offered} -eq 0 ]] || _describe -t names name offered $more
  [[ $kind != *files* ]] || _files
}

_ganymede "$@"
)SH";

constexpr const char* kFish = R"SH(# fish completion for ganymede, as `ganymede completion fish` prints it.

function __ganymede_offer
    set -l words (commandline -opc)
    set -l word (commandline -ct)
    test (count $word) -eq 1; or set word ''
    set -l offered ($words[1] completion fish -- $words[2..-1] $word 2>/dev/null)
    string match -q '*files*' -- $offered[1]; and __fish_complete_path $word
    test (count $offered) -lt 2; or printf '%s\n' $offered[2..-1]
end

complete -c ganymede -f -a '(__ganymede_offer)'
)SH";

struct Shell {
  const char* name;
  const char* script;
  const char* before_description;  ///< between a name and its description; empty: the shell shows none
};
constexpr Shell kShells[] = {{"bash", kBash, ""}, {"zsh", kZsh, ":"}, {"fish", kFish, "\t"}};

struct Offer {
  std::string name, description;
};

/// Words that may stand in place of the last one of a line.
struct Offers {
  std::vector<Offer> names;
  bool files = false, list = false;
  std::string before;  ///< of the word, to be kept: "--scheme=" or "ring,"
};

const OptionDoc* option_of(const CommandDoc& command, const std::string& name) {
  const auto found = std::find_if(command.options.begin(), command.options.end(), [&](const OptionDoc& option) {
    return std::find(option.names.begin(), option.names.end(), name) != option.names.end();
  });
  return found == command.options.end() ? nullptr : &*found;
}

Offers values_of(const OptionDoc& option, const std::string& word, std::string before) {
  Offers out{.names = {}, .files = option.files, .list = option.list, .before = std::move(before)};
  const std::size_t comma = option.list ? word.rfind(',') : std::string::npos;
  if (comma != std::string::npos) out.before += word.substr(0, comma + 1);
  for (const std::string& name : option.offered) out.names.push_back({name, ""});
  return out;
}

/// The command that the words before the last one name, how many arguments follow it, and the option whose value the
/// last word is. Bash makes three words of "--option=value".
struct Place {
  const CommandDoc* command;
  std::size_t arguments = 0;
  const OptionDoc* option = nullptr;
};

Place place_of(const CommandDoc& program, std::span<const std::string> before) {
  Place place{.command = &program};
  for (const std::string& word : before) {
    if (word == "=") continue;
    if (std::exchange(place.option, nullptr) != nullptr) continue;
    if (word.starts_with('-')) {
      const OptionDoc* option = option_of(*place.command, word);
      if (option != nullptr && !option->value.empty()) place.option = option;
      continue;
    }
    const auto& below = place.command->commands;
    const auto found = std::find_if(below.begin(), below.end(),
                                    [&](const CommandDoc& command) { return command.path.back() == word; });
    if (found != below.end())
      place.command = &*found;
    else
      ++place.arguments;
  }
  return place;
}

/// The offers at a place of a command's arguments.
Offers arguments_at(const Place& place, const std::string& word) {
  const CommandDoc& command = *place.command;
  if (word.starts_with('-')) {
    Offers out;
    for (const OptionDoc& option : command.options)
      for (const std::string& name : option.names) out.names.push_back({name, option.description});
    return out;
  }
  if (!command.commands.empty()) {
    Offers out;
    for (const CommandDoc& below : command.commands) out.names.push_back({below.path.back(), below.summary});
    return out;
  }
  if (command.arguments.empty()) return {};
  const OptionDoc& last = command.arguments.back();
  if (place.arguments >= command.arguments.size() && !last.repeats) return {};
  return values_of(command.arguments[std::min(place.arguments, command.arguments.size() - 1)], word, "");
}

}  // namespace

std::string completions(const CommandDoc& program, std::span<const std::string> words,
                        const std::string& before_description) {
  std::string word = words.empty() ? "" : words.back();
  const Place place = place_of(program, words.first(words.empty() ? 0 : words.size() - 1));
  if (word == "=") word.clear();
  Offers offers;
  const std::size_t equals = word.find('=');
  const OptionDoc* inside = equals == std::string::npos ? nullptr : option_of(*place.command, word.substr(0, equals));
  if (inside != nullptr)
    offers = values_of(*inside, word.substr(equals + 1), word.substr(0, equals + 1));
  else if (place.option != nullptr)
    offers = values_of(*place.option, word, "");
  else
    offers = arguments_at(place, word);
  std::string out;
  for (const auto& [name, description] : offers.names) {
    std::string whole = offers.before + name;
    if (!whole.starts_with(word)) continue;
    if (before_description == ":")
      for (std::size_t at = 0; (at = whole.find(':', at)) != std::string::npos; at += 2) whole.insert(at, "\\");
    const bool described = !before_description.empty() && !description.empty();
    out += whole + (described ? before_description + description : "") + "\n";
  }
  return fmt::format("{}{}\n", offers.files ? "files " : "", offers.list ? "list" : "") + out;
}

namespace {

struct CompletionOptions {
  std::string shell;
  std::vector<std::string> words;
};

void declare_completion(Parser command, Shared& shared) {
  auto options = std::make_shared<CompletionOptions>();
  command.add_option("shell", options->shell, "bash, zsh or fish")
      .required()
      .check(one_of(ganymede::names_of(kShells)));
  command.add_option(
      "words", options->words,
      "after --: the words of a line; prints, as the script wants it, what may stand in place of the last");
  add_output(command, shared);
  command.callback([options, command, &shared] {
    check_output(shared);
    for (const Shell& known : kShells)
      if (options->shell == known.name)
        emit(shared, options->words.empty() ? known.script
                                            : completions(read_commands(command.parent().parser()), options->words,
                                                          known.before_description));
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
              "Prints a script that completes commands, options, the names that an option takes, and files. It asks\n"
              "the program for them at each press of the key. An installed package has the scripts already.",
          .declare = declare_completion};
}

}  // namespace ganymede::cli
