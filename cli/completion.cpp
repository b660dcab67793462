// ganymede completion: scripts with which shells complete commands, options, names and files.

#include <memory>

#include "cli/command.hpp"
#include "cli/command_tree.hpp"
#include "cli/completion_shells.hpp"

namespace ganymede::cli {

namespace {

void declare_completion(Parser command, Shared& shared) {
  auto shell = std::make_shared<std::string>();
  command.add_option("shell", *shell, "bash, zsh or fish").required().check(one_of({"bash", "zsh", "fish"}));
  add_output(command, shared);
  command.callback([shell, command, &shared] {
    check_output(shared);
    const CommandDoc program = read_commands(command.parent().parser());
    emit(shared, *shell == "bash"  ? bash_completion(program)
                 : *shell == "zsh" ? zsh_completion(program)
                                   : fish_completion(program));
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
