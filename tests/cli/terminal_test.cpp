// The program on a pseudo-terminal: the width of tables, colours, progress.

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <unistd.h>

#include <algorithm>
#include <sstream>
#include <vector>

#include "cli/progress.hpp"
#include "common/json_value.hpp"
#include "report/table.hpp"
#include "run_program.hpp"
#include "support/when.hpp"

namespace ganymede::cli {
namespace {

using testing::Contains;
using testing::ContainsRegex;
using testing::Each;
using testing::HasSubstr;
using testing::Not;
using testing::ResultOf;

constexpr const char* kStudy = GANYMEDE_SOURCE_DIR "/studies/first-look.json";

/// Everything that the program writes to a terminal of `columns` columns: stdout and stderr, unless `arguments`
/// redirect them. `environment` has words such as "NAME=VALUE". Each entry of `typed` is typed once its first text has
/// been written.
std::string on_terminal(const std::string& arguments, int columns = 80, const std::string& environment = "",
                        const std::vector<std::pair<std::string, std::string>>& typed = {}) {
  const std::string command = "env -u NO_COLOR -u COLUMNS TERM=xterm GANYMEDE_NOW=2026-11-20T12:00:00Z " + environment +
                              " CUDA_VISIBLE_DEVICES= " GANYMEDE_BINARY " " + arguments;
  const winsize size{24, static_cast<unsigned short>(columns), 0, 0};
  int terminal = -1;
  const pid_t child = ::forkpty(&terminal, nullptr, nullptr, &size);
  if (child == 0) {
    ::signal(SIGINT, SIG_DFL);  // a shell's background job ignores it, and hands that down
    ::execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
    ::_exit(127);
  }
  std::string out;
  char buffer[4096];
  // read() fails when the program has closed the terminal.
  std::size_t next = 0, seen = 0;
  for (ssize_t got = 0; (got = ::read(terminal, buffer, sizeof buffer)) > 0;) {
    out.append(buffer, static_cast<std::size_t>(got));
    while (next < typed.size()) {
      const std::size_t at = out.find(typed[next].first, seen);
      if (at == std::string::npos) break;
      seen = at + typed[next].first.size();
      const std::string& text = typed[next++].second;
      if (::write(terminal, text.data(), text.size()) < 0) ADD_FAILURE() << "cannot type " << text;
    }
  }
  ::close(terminal);
  ::waitpid(child, nullptr, 0);
  // The terminal turns "\n" into "\r\n"; this reverts it.
  for (std::size_t at = 0; (at = out.find("\r\n", at)) != std::string::npos;) out.erase(at, 1);
  return out;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

/// Sorted, without rules.
std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> words;
  std::istringstream in(text);
  for (std::string word; in >> word;)
    if (word.find_first_not_of('-') != std::string::npos) words.push_back(word);
  std::sort(words.begin(), words.end());
  return words;
}

std::size_t width_of(const std::string& line) { return report::columns_of(line); }

TEST(Terminal, TablesFitAndLoseNothing) {
  NOT_SANITIZED("a thread shows progress beside children that are forked, where the sanitizers' allocator can hang");
  for (const std::string& command : {"sweep " + std::string(kStudy), std::string("list schemes"),
                                     std::string("validate stylegan2_ada_v100"), std::string("catalog --gpu V100")}) {
    const std::string whole = run_program(command).out;
    for (const int columns : {72, 100, 140}) {
      const std::string fitted = on_terminal(command + " --no-color", columns);
      EXPECT_THAT(lines_of(fitted), Each(ResultOf(width_of, testing::Le(static_cast<std::size_t>(columns)))))
          << command;
      EXPECT_EQ(words_of(fitted), words_of(whole)) << command << " in " << columns;
    }
    EXPECT_EQ(on_terminal(command + " --no-color", 1000), whole) << command;
  }
}

// A plan's first lines hold the money even where its rows are folded; what all rows share is said once.
TEST(Terminal, APlanHasItsMoneyFirst) {
  NOT_SANITIZED("a thread shows progress beside children that are forked, where the sanitizers' allocator can hang");
  const std::string command =
      "plan --model dcgan-64 --images 500000 --batch 128 --catalog gcp,aws --gpu T4 --market on-demand --max-gpus 2 "
      "--region us-central1,us-east-1 --no-color --verbose";
  for (const int columns : {80, 140}) {
    const auto lines = lines_of(on_terminal(command, columns));
    EXPECT_THAT(lines, Each(ResultOf(width_of, testing::Le(static_cast<std::size_t>(columns)))));
    const auto heading = std::find_if(lines.begin(), lines.end(), [](const auto& line) {
      return line.find("  USD  ") != std::string::npos && line.find("  where ") != std::string::npos;
    });
    ASSERT_NE(heading, lines.end()) << columns;
    EXPECT_THAT(*heading, HasSubstr("rented")) << columns;
    EXPECT_THAT(lines, Contains(HasSubstr("checkpoint none"))) << "is the same in all rows";
  }
}

TEST(Terminal, HelpNeverBreaksAWord) {
  NOT_SANITIZED("a thread shows progress beside children that are forked, where the sanitizers' allocator can hang");
  for (const char* command : {"", "plan ", "simulate ", "train ", "import nccl-tests ", "calibrate ", "serve "}) {
    const std::string whole = run_program(std::string(command) + "--help").out;
    for (const int columns : {60, 80, 100}) {
      const std::string fitted = on_terminal(std::string(command) + "--help", columns);
      EXPECT_EQ(words_of(fitted), words_of(whole)) << command << columns;
      for (const std::string& line : lines_of(fitted)) {
        const bool is_one_word = line.find(' ', line.find_first_not_of(' ')) == std::string::npos;
        EXPECT_TRUE(is_one_word || width_of(line) <= static_cast<std::size_t>(columns)) << line;
      }
    }
  }
}

TEST(Terminal, OtherOutputsAreLeftAsTheyAre) {
  NOT_SANITIZED("a thread shows progress beside children that are forked, where the sanitizers' allocator can hang");
  const Scratch scratch;
  const std::string command = "sweep " + std::string(kStudy);
  const std::string file = (scratch / "out").string();
  const std::string whole = run_program(command).out;
  EXPECT_EQ(on_terminal(command + " -o " + file, 60), "");
  EXPECT_EQ(content_of(file), whole);
  on_terminal(command + " > " + file, 60);
  EXPECT_EQ(content_of(file), whole);
  EXPECT_EQ(on_terminal("list schemes --format json", 40), run_program("list schemes --format json").out);
  EXPECT_EQ(on_terminal("example scenario", 40), run_program("example scenario").out);
}

TEST(Terminal, ColumnsOverrulesTheTerminal) {
  NOT_SANITIZED("a thread shows progress beside children that are forked, where the sanitizers' allocator can hang");
  EXPECT_EQ(on_terminal("list schemes", 200, "COLUMNS=60"), on_terminal("list schemes", 60));
  EXPECT_EQ(on_terminal("list schemes", 60, "COLUMNS=none"), on_terminal("list schemes", 60));
  EXPECT_EQ(on_terminal("list schemes", 60, "COLUMNS=0"), on_terminal("list schemes", 60));
  // A terminal that does not know its width: nothing is wrapped.
  EXPECT_EQ(on_terminal("list schemes", 0), run_program("list schemes").out);
}

TEST(Terminal, ColoursOnATerminalAlone) {
  NOT_SANITIZED("a thread shows progress beside children that are forked, where the sanitizers' allocator can hang");
  const std::string command = "sweep " + std::string(kStudy);
  EXPECT_THAT(on_terminal(command, 200), HasSubstr("\033[1;32m"));
  EXPECT_THAT(on_terminal(command, 200, "NO_COLOR="), HasSubstr("\033[1;32m"));  // empty is not set
  for (const char* off : {"NO_COLOR=1", "TERM=dumb"})
    EXPECT_THAT(on_terminal(command, 200, off), Not(HasSubstr("\033"))) << off;
  EXPECT_THAT(on_terminal("--no-color " + command, 200), Not(HasSubstr("\033")));
  EXPECT_THAT(run_program(command).out, Not(HasSubstr("\033")));
}

// ---- Progress, of a simulation whose policy makes it wait.

class Waiting : public testing::Test {
 protected:
  void SetUp() override {
    NOT_SANITIZED("a thread shows progress beside children that are forked, where the sanitizers' allocator can hang");
  }
  Json policy() {
    const std::string file =
        scratch_.write("slow.py", "import time\ntime.sleep(3)\n" + run_program("example policy").out);
    return {{"name", "external"}, {"command", {"python3", file}}, {"limit", "60s"}};
  }
  std::string simulate() {
    const std::string scenario = scratch_.write("scenario.json", run_program("example scenario").out);
    return "simulate " + scenario + " --set '/policy=" + policy().dump() + "'";
  }
  Scratch scratch_;
};

TEST_F(Waiting, IsSaidAndErased) {
  const std::string out = on_terminal(simulate());
  EXPECT_THAT(out, HasSubstr("\rsimulating: 2 s"));
  EXPECT_THAT(out, Not(HasSubstr("\033[K")));
  // Nothing of the progress is left when the result begins.
  const std::size_t last = out.rfind('\r');
  ASSERT_NE(last, std::string::npos);
  EXPECT_THAT(out.substr(last + 1), testing::StartsWith("aws us-east-1"));
}

// One run at a time, so that none is done after two seconds and one after three.
TEST_F(Waiting, IsCounted) {
  const std::string out = on_terminal("sweep " GANYMEDE_SOURCE_DIR
                                      "/studies/growing-network.json --jobs 1 --set '/seeds=[1,2]' --set '/policies=[" +
                                      policy().dump() + "]' -o " + (scratch_ / "out").string());
  const std::size_t none = out.find("\r[                              ] 0/2 runs  2 s"),
                    one = out.find("[###############               ] 1/2 runs  ");
  ASSERT_NE(none, std::string::npos) << out;
  ASSERT_NE(one, std::string::npos) << out;
  EXPECT_LT(none, one);
  EXPECT_THAT(out.substr(one), HasSubstr(" s left"));
  EXPECT_EQ(out.find(" left"), out.find(" left", one)) << "before one is done nobody knows";
  EXPECT_EQ(out.substr(out.rfind('\r')), "\r");
}

TEST_F(Waiting, IsNotSaidElsewhere) {
  const std::string command = simulate();
  EXPECT_THAT(on_terminal(command + " --quiet"), Not(HasSubstr("simulating")));
  EXPECT_THAT(on_terminal(command + " 2> " + (scratch_ / "err").string()), Not(HasSubstr("simulating")));
  EXPECT_THAT(content_of(scratch_ / "err"), Not(HasSubstr("simulating")));
}

// Ctrl-C ends the program, its children and the policy, and leaves the prompt a line of its own.
TEST_F(Waiting, EndsAtAnInterrupt) {
  const std::string ready = (scratch_ / "ready").string(), done = (scratch_ / "done").string();
  const Json slow = {
      {"name", "external"}, {"command", {"sh", "-c", "touch " + ready + "; sleep 8; touch " + done}}, {"limit", "60s"}};
  const std::string scenario = scratch_.write("scenario.json", run_program("example scenario").out);
  const std::string out = on_terminal("simulate " + scenario + " --set '/policy=" + slow.dump() + "'", 80, "",
                                      {{"simulating: 3 s", "\x03"}});
  EXPECT_TRUE(out.ends_with("\nganymede: interrupted\n")) << out;
  EXPECT_EQ(out.find("interrupted"), out.rfind("interrupted")) << "children stay silent";
  ::sleep(9);
  EXPECT_TRUE(std::filesystem::exists(ready));
  EXPECT_FALSE(std::filesystem::exists(done)) << "the policy went on";
}

TEST(Terminal, TheProgramAloneAsksAndAnswersWithAPlan) {
  NOT_SANITIZED("a thread shows progress beside children that are forked, where the sanitizers' allocator can hang");
  const std::string out = on_terminal("--no-color", 120, "",
                                      {{"Which model", "biggna\n"},
                                       {"did you mean biggan?", "mlp-gan\n"},
                                       {"how many images", "50M\n"},
                                       {"for how much", "1s\n"}});
  EXPECT_THAT(out, HasSubstr("\nganymede plan --model mlp-gan --images 50M --deadline 1s\n"));
  EXPECT_THAT(out, HasSubstr("nothing meets the goals")) << "in one second";
}

TEST(Terminal, TheProgramAloneEndsWithTheInput) {
  NOT_SANITIZED("a thread shows progress beside children that are forked, where the sanitizers' allocator can hang");
  const std::string out = on_terminal("", 80, "", {{"Which model", "\x04"}});
  EXPECT_THAT(out, HasSubstr("ganymede: the questions were not answered"));
}

// Ctrl-C, once the line of the search names a candidate: the plan is the best of what was searched by then.
TEST(Terminal, AnInterruptedPlanIsTheBestSoFar) {
  NOT_SANITIZED("a thread shows progress beside children that are forked, where the sanitizers' allocator can hang");
  const std::string said =
      on_terminal("plan --model dcgan-64 --images 10M --effort exhaustive --no-color", 100, "", {{"so far ", "\x03"}});
  EXPECT_THAT(said, ContainsRegex("interrupted; this is the best of [0-9]+ of [0-9]+ groups of candidates"));
  EXPECT_THAT(said, HasSubstr("USD"));
}

TEST(Terminal, ShortWorkShowsNoProgress) {
  NOT_SANITIZED("a thread shows progress beside children that are forked, where the sanitizers' allocator can hang");
  const std::string out = on_terminal("sweep " + std::string(kStudy) + " --no-color", 1000);
  EXPECT_THAT(out, Not(HasSubstr("\r")));
}

// ---- What progress says.

TEST(Progress, Durations) {
  EXPECT_EQ(cli::duration_text(0.4), "0 s");
  EXPECT_EQ(cli::duration_text(99.9), "99 s");
  EXPECT_EQ(cli::duration_text(100), "0:01:40");
  EXPECT_EQ(cli::duration_text(90061), "25:01:01");
}

TEST(Progress, TimeLeftIsByTheMeanRate) {
  // 4 of 10 pieces were done in 8 s, 2 s each; 0.5 s of the next one have passed.
  EXPECT_DOUBLE_EQ(cli::time_left(4, 10, 8, 8.5), 6 * 2 - 0.5);
  // The fifth piece takes long: if it ended now, the mean would be 4 s.
  EXPECT_DOUBLE_EQ(cli::time_left(4, 10, 8, 20), 5 * 4);
  EXPECT_DOUBLE_EQ(cli::time_left(0, 10, 0, 5), 0);
  EXPECT_DOUBLE_EQ(cli::time_left(10, 10, 5, 5), 0);
  EXPECT_DOUBLE_EQ(cli::time_left(9, 10, 9, 30), 0);
}

TEST(Progress, BarsFitTheirColumns) {
  EXPECT_EQ(cli::bar_text(5, 10, "runs", 4, 4, 200),
            "[" + std::string(15, '#') + std::string(15, ' ') + "] 5/10 runs  4 s, 4 s left");
  EXPECT_EQ(cli::bar_text(0, 10, "runs", 4, -1, 200), "[" + std::string(30, ' ') + "] 0/10 runs  4 s");
  EXPECT_EQ(cli::bar_text(9, 10, "runs", 4, 0.4, 30), "[###########  ] 9/10 runs  4 s");
  for (std::size_t columns = 0; columns < 80; ++columns)
    EXPECT_LE(cli::bar_text(5, 10, "runs", 4, 4, columns).size(), columns);
  EXPECT_EQ(cli::bar_text(5, 10, "runs", 4, 4, 40), "[######       ] 5/10 runs  4 s, 4 s left");
}

}  // namespace
}  // namespace ganymede::cli
