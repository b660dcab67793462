// Only dispatches: one file a command, errors to exit codes.

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <span>

#include "cli/command.hpp"
#include "cli/terminal.hpp"
#include "common/errors.hpp"

namespace {

// As in docs/design.md; 4 (a gate missed) belongs to commands that have gates, 130 is the shell's for an interrupt.
constexpr int kFailure = 1;
constexpr int kInvalid = 2;
constexpr int kInfeasible = 3;

int report(int code, const char* message) {
  ganymede::cli::say(ganymede::wrap_prose(fmt::format("ganymede: {}\n", message), ganymede::cli::remark_width()));
  return code;
}

/// The arguments from the first word on, after the options that stand before it: what should be the command. Empty if
/// there is none, or an unknown option comes first, which is the parser's to refuse.
std::span<char* const> from_command(const CLI::App& app, std::span<char* const> arguments) {
  for (; !arguments.empty(); arguments = arguments.subspan(1)) {
    const std::string word = arguments.front();
    if (!word.starts_with('-')) return arguments;
    if (app.get_option_no_throw(word) == nullptr) return {};
  }
  return {};
}

/// The library only says that a command is missing.
void check_command(const CLI::App& app, std::span<char* const> arguments) {
  arguments = from_command(app, arguments);
  if (arguments.empty()) return;
  const std::string word = arguments.front();
  std::vector<std::string> names;
  for (const auto* command : app.get_subcommands({})) names.push_back(command->get_name());
  if (names.empty()) return;
  if (std::find(names.begin(), names.end(), word) != names.end())
    return check_command(*app.get_subcommand(word), arguments.subspan(1));
  const auto guess = ganymede::nearest(word, names);
  throw ganymede::ConfigError(
      fmt::format("no command \"{}{}\", expected {}{}", app.get_parent() == nullptr ? "" : app.get_name() + " ", word,
                  ganymede::list_of(names), guess ? fmt::format("; did you mean \"{}\"?", *guess) : ""));
}

}  // namespace

int main(int argc, char** argv) {
  using namespace ganymede;
  CLI::App app(
      "How long a GAN training takes on a cloud, how busy the hardware is and what it costs, before you pay for it.\n"
      "\n"
      "  ganymede train --model mlp-gan --steps 300 --trace trace.json     train for real and record the steps\n"
      "  ganymede example scenario > scenario.json                         a commented file to start from\n"
      "  ganymede simulate scenario.json                                   time, utilization, cost of a run\n"
      "  ganymede sweep studies/first-look.json                            platforms x GPU counts x schemes\n"
      "  ganymede plan --model dcgan-64 --images 50000000 --deadline 60h --budget 500USD      what to rent\n"
      "  ganymede catalog --gpu A100                                       prices, and how old they are\n"
      "  ganymede allreduce --catalog aws --instance p4d.24xlarge --nodes 2 --scheme ring,nccl --bytes 64MiB\n"
      "  ganymede COMMAND --help                                           examples and options of a command\n",
      "ganymede");
  app.formatter(cli::help_formatter());
  app.set_version_flag("--version", "ganymede " GANYMEDE_VERSION);
  app.require_subcommand(1);
  app.failure_message([](const CLI::App* /*app*/, const CLI::Error& error) {
    return fmt::format("ganymede: {}; --help tells more\n", error.what());
  });

  cli::Shared shared;
  shared.color = cli::may_color();
  app.add_flag_callback(
      "--no-color", [&] { shared.color = false; }, "no colours");
  app.add_flag("-q,--quiet", shared.quiet, "no progress and no remarks on stderr");
  cli::add_progress_fd(app, shared);
  app.fallthrough();
  cli::add_train(app, shared);
  cli::add_generate(app, shared);
  cli::add_calibrate(app, shared);
  cli::add_simulate(app, shared);
  cli::add_sweep(app, shared);
  cli::add_validate(app, shared);
  cli::add_plan(app, shared);
  cli::add_learn(app, shared);
  cli::add_allreduce(app, shared);
  cli::add_import(app, shared);
  cli::add_report(app, shared);
  cli::add_export(app, shared);
  cli::add_doctor(app, shared);
  cli::add_catalog(app, shared);
  cli::add_list(app, shared);
  cli::add_schema(app, shared);
  cli::add_example(app, shared);
  cli::add_serve(app, shared);
  cli::add_completion(app, shared);
  cli::add_man(app, shared);

  try {
    check_command(app, std::span(argv, static_cast<std::size_t>(argc)).subspan(argc > 0 ? 1 : 0));
    app.parse(argc, argv);
    return shared.exit_code;
  } catch (const CLI::ParseError& error) {
    // Help and version are "errors" of the library with exit code 0; its own codes for the others are 100 and above.
    return app.exit(error) == 0 ? 0 : kInvalid;
  } catch (const ConfigError& error) {
    return report(kInvalid, error.what());
  } catch (const Infeasible& error) {
    return report(kInfeasible, error.what());
  } catch (const std::exception& error) {
    return report(kFailure, error.what());
  }
}
