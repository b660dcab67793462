// ganymede completion: what shells need to complete commands, options, names and files.

#include <memory>

#include "cli/command.hpp"
#include "cli/command_tree.hpp"
#include "cli/completion_shells.hpp"

namespace ganymede::cli {

void add_completion(CLI::App& app, Shared& shared) {
  auto* command = app.add_subcommand(
      "completion",
      "completions for a shell: bash, zsh or fish\n"
      "Examples:\n"
      "  source <(ganymede completion bash)                                     for this shell\n"
      "  ganymede completion bash -o ~/.local/share/bash-completion/completions/ganymede\n"
      "  ganymede completion zsh -o ~/.zfunc/_ganymede                          a folder of $fpath\n"
      "  ganymede completion fish -o ~/.config/fish/completions/ganymede.fish\n"
      "\n"
      "Prints a script that completes commands, options, the names that an option takes, and files. An installed\n"
      "package has them already.");
  auto shell = std::make_shared<std::string>();
  command->add_option("shell", *shell, "bash, zsh or fish")->required()->check(CLI::IsMember({"bash", "zsh", "fish"}));
  add_output(*command, shared);
  command->callback([shell, &app, &shared] {
    check_output(shared);
    const CommandDoc program = read_commands(app);
    emit(shared, *shell == "bash"  ? bash_completion(program)
                 : *shell == "zsh" ? zsh_completion(program)
                                   : fish_completion(program));
  });
}

}  // namespace ganymede::cli
