// A registered command appears in the overview, the help, completions and manual pages without another edit.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <functional>
#include <set>

#include "cli/command.hpp"
#include "cli/export.hpp"
#include "cli/man.hpp"
#include "common/errors.hpp"
#include "run_program.hpp"

namespace ganymede::cli {
namespace {

using testing::HasSubstr;

TEST(Commands, DescribeThemselves) {
  std::set<std::string> names;
  for (const cli::Command& command : cli::commands()) {
    EXPECT_TRUE(names.insert(command.name).second) << command.name;
    EXPECT_FALSE(command.summary.empty()) << command.name;
    EXPECT_THAT(command.examples, HasSubstr("ganymede ")) << command.name;
    ASSERT_TRUE(command.declare) << command.name;
  }
}

// Every command has an entry, alone or with its subcommands, in the overview of docs/commands.md.
TEST(Commands, AreThoseOfTheDocumentation) {
  const std::string page = content_of(GANYMEDE_SOURCE_DIR "/docs/commands.md");
  for (const cli::Command& command : cli::commands()) EXPECT_THAT(page, HasSubstr("\n- `" + command.name));
}

TEST(Commands, ANewOneIsEverywhere) {
  static std::string given;
  cli::Shared shared;
  const std::vector<cli::Command> all = {{.name = "dummy",
                                          .summary = "does nothing at all",
                                          .examples = "  ganymede dummy --what nothing\n",
                                          .about = "It is here for a test.",
                                          .declare = [](cli::Parser command, cli::Shared& /*shared*/) {
                                            command.add_option("--what", given, "what not to do");
                                          }}};
  const auto program = cli::make_program(all, shared);
  EXPECT_THAT(program->help(), HasSubstr("  dummy        does nothing at all\n"));
  const std::string help = program->get_subcommand("dummy")->help();
  EXPECT_THAT(help, HasSubstr("Examples:\n  ganymede dummy --what nothing\n\nIt is here for a test."));
  EXPECT_THAT(help, HasSubstr("what not to do"));
  const cli::CommandDoc tree = cli::read_commands(*program);
  const std::vector<std::string> start = {"dum"}, flag = {"dummy", "--w"};
  EXPECT_EQ(cli::completions(tree, start, "\t"), "\ndummy\tdoes nothing at all\n");
  EXPECT_EQ(cli::completions(tree, flag, ""), "\n--what\n");
  program->parse("dummy --what everything");
  EXPECT_EQ(given, "everything");
}

TEST(Commands, ANewExporterIsASubcommand) {
  static std::string color;
  const exports::Exporter dummy{
      .name = "dummy",
      .summary = "a format of a test",
      .examples = "  ganymede export dummy result.json\n",
      .about = "",
      .reads = {report::DocumentKind::result},
      .options = {{.name = "color", .summary = "which color", .default_value = "red", .choices = {"red", "blue"}}},
      .check = [](const exports::ExportValues& values) { color = values.text("color"); },
      .write = [](const report::Document&, const exports::ExportValues&,
                  const exports::ExportConsole&) { return std::string(); }};
  cli::Shared shared;
  const std::vector<cli::Command> all = {cli::exporter_command(dummy)};
  const auto program = cli::make_program(all, shared);
  EXPECT_THAT(program->help(), HasSubstr("  dummy        a format of a test\n"));
  EXPECT_THAT(program->get_subcommand("dummy")->help(), HasSubstr("which color"));
  const cli::CommandDoc tree = cli::read_commands(*program);
  ASSERT_EQ(tree.commands.size(), 1U);
  EXPECT_THAT(tree.commands[0].options[1].checked, testing::ElementsAre("red", "blue"));
  EXPECT_THROW(program->parse("dummy missing.json --color blue"), ConfigError);
  EXPECT_EQ(color, "blue");
  EXPECT_THROW(program->parse("dummy result.json --color green"), CLI::ParseError);
}

/// Calls `visit` with each option of the command and of the commands below it.
void for_each_option(CLI::App& command, const std::function<void(CLI::Option&)>& visit) {
  for (CLI::Option* option : command.get_options(nullptr)) visit(*option);
  for (CLI::App* below : command.get_subcommands(nullptr)) for_each_option(*below, visit);
}

// CLI11's own checks of a range let "nan" pass, which is neither below nor above anything.
TEST(Commands, OptionsThatCheckANumberRefuseWhatIsNone) {
  cli::Shared shared;
  const auto program = cli::make_program(cli::commands(), shared);
  int checked = 0;
  for_each_option(*program, [&](CLI::Option& option) {
    if (!option.get_type_name().starts_with("FLOAT:")) return;
    ++checked;
    for (std::string text : {"nan", "-nan", "inf", "1e999"})
      EXPECT_FALSE((*option.get_validator(0))(text).empty()) << option.get_name() << " takes " << text;
  });
  EXPECT_GT(checked, 8);
}

}  // namespace
}  // namespace ganymede::cli
