// Completions and manual pages agree with --help.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <regex>
#include <set>
#include <sstream>
#include <vector>

#include "common/json_value.hpp"
#include "run_program.hpp"
#include "support/when.hpp"

namespace ganymede::cli {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsSupersetOf;

using Strings = std::vector<std::string>;

/// The first group of each match.
Strings found_in(const std::string& text, const std::string& pattern) {
  Strings all;
  const std::regex expression(pattern);
  for (std::sregex_iterator at(text.begin(), text.end(), expression), end; at != end; ++at) all.push_back((*at)[1]);
  return all;
}

/// All commands below `above`, as the help texts list them: "simulate", "import", "import layers", ...
Strings commands(const std::string& above = "") {
  const std::string help = run_program(above + " --help").out;
  // Commands stand below headings: "Subcommands:", or what one wants to know.
  const std::size_t list = help.find(above.empty() ? "\nWhat to rent" : "\nSubcommands:");
  if (list == std::string::npos) return {};
  Strings all;
  for (const std::string& name : found_in(help.substr(list), "\n  ([a-z-]+)  ")) {
    all.push_back(above);
    all.back() += (above.empty() ? "" : " ") + name;
    const Strings below = commands(all.back());
    all.insert(all.end(), below.begin(), below.end());
  }
  return all;
}

/// The long options in a command's help, such as "--format", without the options of the program.
Strings options(const std::string& command) {
  const std::string help = run_program(command + " --help").out;
  return found_in(help.substr(help.find("\nOptions:")), "\n  (?:-[a-z],)?(--[a-z0-9-]+)");
}

bool has(const std::string& program) { return std::system(("command -v " + program + " >/dev/null").c_str()) == 0; }

/// The lines that a shell prints when it runs a script.
Strings lines_by(const std::string& shell, const std::string& script) {
  const Scratch scratch;
  const std::string file = scratch.write("script", script), out = (scratch / "out").string();
  EXPECT_EQ(std::system((shell + " " + file + " > " + out + " 2>&1").c_str()), 0) << content_of(out);
  Strings lines;
  std::istringstream in(content_of(out));
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

/// The completions that bash offers for the last of these words. As in bash, "=" is a word of its own.
Strings bash_offers(const Strings& words) {
  static const std::string completion = run_program("completion bash").out;
  std::string line;
  for (const auto& word : words) line += " '" + word + "'";
  return lines_by("bash --norc", completion + "\nCOMP_WORDS=('" GANYMEDE_BINARY "'" + line +
                                     ")\nCOMP_CWORD=$((${#COMP_WORDS[@]} - 1))\n_ganymede\n"
                                     "[[ ${#COMPREPLY[@]} -eq 0 ]] || printf '%s\\n' \"${COMPREPLY[@]}\"\n");
}

TEST(Completion, OffersEveryCommandAndOption) {
  NOT_SANITIZED("starts dozens of programs, and one starts slowly there");
  const Strings all = commands();
  EXPECT_THAT(all, IsSupersetOf({"train", "simulate", "import layers", "completion", "man"}));
  const Strings top = bash_offers({""});
  for (const std::string& command : all) {
    Strings words;
    std::istringstream parts(command);
    for (std::string part; parts >> part;) words.push_back(part);
    if (words.size() == 1) {
      EXPECT_THAT(top, Contains(command));
    }
    words.emplace_back("--");
    const Strings offered = bash_offers(words);
    const Strings expected = options(command);
    EXPECT_FALSE(expected.empty()) << command;
    EXPECT_THAT(offered, IsSupersetOf(expected)) << command;
    EXPECT_THAT(offered, IsSupersetOf({"--quiet", "--no-color", "--max-memory", "--max-work"})) << command;
    EXPECT_EQ(offered.size(), expected.size() + 4) << command;
  }
}

TEST(Completion, OffersNamesWhereOnlyTheyMayStand) {
  EXPECT_THAT(bash_offers({"simulate", "s.json", "--fidelity", ""}), ElementsAre("sampled", "message"));
  EXPECT_THAT(bash_offers({"simulate", "--fidelity", "=", "mes"}), ElementsAre("message"));
  EXPECT_THAT(bash_offers({"simulate", "--fidelity", "="}), ElementsAre("sampled", "message"));
  EXPECT_THAT(bash_offers({"--quiet", "sweep", "--format", "j"}), ElementsAre("json"));
  EXPECT_THAT(bash_offers({"train", "--model", "dcgan-3"}), ElementsAre("dcgan-32"));
  EXPECT_THAT(bash_offers({"allreduce", "--scheme", "ring,hal"}), ElementsAre("ring,halving-doubling"));
  EXPECT_THAT(bash_offers({"list", "mod"}), ElementsAre("modes", "models"));
  EXPECT_THAT(bash_offers({"import", "lay"}), ElementsAre("layers"));
  EXPECT_THAT(bash_offers({"import", "layers", "--batch", "4", "styl"}), ElementsAre("stylegan2"));
  EXPECT_THAT(bash_offers({"export", "f"}), ElementsAre("focus"));
  EXPECT_THAT(bash_offers({"export", "focus", "no such file"}), ElementsAre());
  EXPECT_THAT(bash_offers({"list", "models", ""}), ElementsAre());
}

TEST(Completion, OffersNamesAndFiles) {
  const Scratch scratch;
  const std::string file = scratch.write("awesome.json", "{}");
  const std::string start = file.substr(0, file.size() - 6);
  EXPECT_THAT(bash_offers({"allreduce", "--catalog", "aw"}), Contains("aws"));
  EXPECT_THAT(bash_offers({"allreduce", "--catalog", start}), ElementsAre(file));
  EXPECT_THAT(bash_offers({"simulate", start}), ElementsAre(file));
  EXPECT_THAT(bash_offers({"export", "focus", start}), ElementsAre(file));
}

TEST(Completion, TellsEachShellWhatItCanShow) {
  const auto offers = [](const std::string& words) { return run_program("completion " + words).out; };
  EXPECT_EQ(offers("bash -- import lay"), "\nlayers\n");
  EXPECT_THAT(offers("fish -- import lay"), testing::MatchesRegex("\nlayers\t[^\n]+\n"));
  EXPECT_THAT(offers("zsh -- import lay"), testing::MatchesRegex("\nlayers:[^\n]+\n"));
  EXPECT_EQ(offers("zsh -- allreduce --scheme=ring,hal"), "list\n--scheme=ring,halving-doubling\n");
  EXPECT_THAT(offers("fish -- allreduce --catalog aw"), testing::MatchesRegex("files ?\naws\n"));
  EXPECT_EQ(offers("bash -- no such command"), "\n");
}

TEST(Completion, IsWhatTheShellsCanRead) {
  const Scratch scratch;
  for (const char* shell : {"bash", "zsh", "fish"}) {
    const std::string file = scratch.write(shell, run_program(std::string("completion ") + shell).out);
    if (!has(shell)) continue;
    EXPECT_EQ(std::system((std::string(shell) + " -n " + file).c_str()), 0) << shell;
  }
}

TEST(Completion, OfFish) {
  if (!has("fish")) GTEST_SKIP() << "fish is not installed";
  const std::string completion = run_program("completion fish").out;
  const auto offers = [&](const std::string& line) {
    Strings names;
    for (const std::string& offered :
         lines_by("fish --no-config", completion + fmt::format("complete -C '{} {}'\n", GANYMEDE_BINARY, line)))
      names.push_back(offered.substr(0, offered.find('\t')));
    return names;
  };
  for (const std::string& command : commands()) {
    Strings expected = options(command);
    EXPECT_THAT(offers(command + " --"), IsSupersetOf(expected)) << command;
  }
  EXPECT_THAT(offers("simulate s.json --fidelity "), testing::UnorderedElementsAre("message", "sampled"));
  EXPECT_THAT(offers("import lay"), ElementsAre("layers"));
  EXPECT_THAT(offers("allreduce --scheme ring,hal"), ElementsAre("ring,halving-doubling"));
}

TEST(Completion, RefusesAnotherShell) {
  const Outcome outcome = run_program("completion tcsh");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("tcsh"));
}

// ---- Manual pages.

TEST(Man, ThereIsAPageForEveryCommandAndOption) {
  NOT_SANITIZED("starts dozens of programs, and one starts slowly there");
  const Scratch scratch;
  std::filesystem::create_directory(scratch / "man1");
  ASSERT_EQ(run_program("man --folder " + (scratch / "man1").string()).code, 0);
  const Strings all = commands();
  std::size_t pages = 0;
  for (const auto& entry : std::filesystem::directory_iterator(scratch / "man1")) pages += entry.is_regular_file();
  EXPECT_EQ(pages, all.size() + 1);
  for (const std::string& command : all) {
    std::string name = "ganymede-" + command;
    std::replace(name.begin(), name.end(), ' ', '-');
    const std::string page = content_of(scratch / "man1" / (name + ".1"));
    for (std::string option : options(command)) {
      for (std::size_t at = 0; (at = option.find('-', at)) != std::string::npos; at += 2) option.insert(at, "\\");
      EXPECT_THAT(page, HasSubstr("\\fB" + option + "\\fR")) << command;
    }
    EXPECT_EQ(page, run_program("man " + command).out) << command;
  }
}

TEST(Man, TheExitCodesAreTheDocumentations) {
  const std::string page = run_program("man").out;
  const std::string commands_md = content_of(GANYMEDE_SOURCE_DIR "/docs/commands.md");
  const std::regex row("\n\\| ([0-9]+) \\| ([^|]+) \\|");
  int rows = 0;
  for (std::sregex_iterator at(commands_md.begin(), commands_md.end(), row), end; at != end; ++at, ++rows) {
    std::string meaning = (*at)[2];
    for (std::size_t dash = 0; (dash = meaning.find('-', dash)) != std::string::npos; dash += 2)
      meaning.insert(dash, "\\");
    EXPECT_THAT(page, HasSubstr(".B " + (*at)[1].str() + "\n" + meaning + "\n"));
  }
  EXPECT_EQ(rows, 6);
}

TEST(Man, GroffHasNothingToSay) {
  if (!has("groff")) GTEST_SKIP() << "groff is not installed";
  const Scratch scratch;
  std::filesystem::create_directory(scratch / "man1");
  ASSERT_EQ(run_program("man --folder " + (scratch / "man1").string()).code, 0);
  const std::string said = (scratch / "said").string();
  EXPECT_EQ(std::system(("for page in " + (scratch / "man1").string() +
                         "/*.1; do groff -man -Tutf8 -ww -z -rLL=100n \"$page\" 2>> " + said + " || exit 1; done")
                            .c_str()),
            0);
  EXPECT_EQ(content_of(said), "");
}

TEST(Man, RefusesWhatIsNoCommand) {
  const Outcome outcome = run_program("man simulat");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("did you mean \"simulate\"?"));
  EXPECT_EQ(run_program("man --folder /no/such/folder").code, 2);
  EXPECT_EQ(run_program("man simulate --folder .").code, 2);
}

}  // namespace
}  // namespace ganymede::cli
