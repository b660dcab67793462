// Runs the commands of docs/tutorial.md and docs/questions.md in their order, in a temporary folder, and compares what
// they print.
//
// These pages have three kinds of fenced blocks with commands:
//
//   ```console          runs, exits with 0, and prints what the block shows below each command
//   ```console varies   runs and exits with 0; what it prints depends on the machine
//   ```sh               does not run: getting, building and opening a page

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace ganymede {
namespace {

namespace fs = std::filesystem;

struct TutorialCommand {
  std::string text;
  std::vector<std::string> shown;  ///< lines of output in the tutorial
  bool varies = false;             ///< the output depends on the machine and is not compared
  int line = 0;                    ///< in docs/tutorial.md, from 1
};

std::vector<std::string> lines_of(const fs::path& file) {
  std::ifstream in(file);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

std::vector<TutorialCommand> commands_in(const std::vector<std::string>& lines) {
  std::vector<TutorialCommand> commands;
  bool in_block = false, varies = false;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::string& line = lines[i];
    if (line.starts_with("```")) {
      in_block = !in_block && line.starts_with("```console");
      varies = line == "```console varies";
    } else if (in_block && line.starts_with("$ ")) {
      commands.push_back({line.substr(2), {}, varies, static_cast<int>(i) + 1});
      while (commands.back().text.ends_with("\\") && i + 1 < lines.size())
        commands.back().text += "\n" + lines[++i];  // the shell joins them
    } else if (in_block && !commands.empty()) {
      commands.back().shown.push_back(line);
    }
  }
  return commands;
}

/// True if `printed` is what `shown` says. A shown line "..." stands for any number of lines, also none; " ..." at the
/// end of a shown line stands for the rest of that line.
bool matches(const std::vector<std::string>& shown, std::size_t s, const std::vector<std::string>& printed,
             std::size_t p) {
  if (s == shown.size()) return p == printed.size();
  if (shown[s] == "...") {
    for (std::size_t next = p; next <= printed.size(); ++next)
      if (matches(shown, s + 1, printed, next)) return true;
    return false;
  }
  if (p == printed.size()) return false;
  const std::string& line = shown[s];
  const bool same =
      line.ends_with(" ...") ? printed[p].starts_with(line.substr(0, line.size() - 4)) : printed[p] == line;
  return same && matches(shown, s + 1, printed, p + 1);
}

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (fs::temp_directory_path() / "ganymede-tutorial-XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() { fs::remove_all(path_); }
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

TEST(TutorialLines, AreComparedWithEllipses) {
  const std::vector<std::string> printed = {"head", "a 1 2", "b", "tail"};
  EXPECT_TRUE(matches({"head", "a 1 2", "b", "tail"}, 0, printed, 0));
  EXPECT_TRUE(matches({"head", "...", "tail"}, 0, printed, 0));
  EXPECT_TRUE(matches({"head", "a ...", "..."}, 0, printed, 0));
  EXPECT_FALSE(matches({"head", "a 1 3", "b", "tail"}, 0, printed, 0));
  EXPECT_FALSE(matches({"head", "a 1 2"}, 0, printed, 0));
  EXPECT_FALSE(matches({"head", "a 1 2", "b", "tail", "more"}, 0, printed, 0));
}

/// A page with commands, and how many it has at least.
struct RunPage {
  const char* file;
  std::size_t commands;
};

class Tutorial : public testing::TestWithParam<RunPage> {};

TEST_P(Tutorial, CommandsPrintWhatItShows) {
  const TemporaryFolder folder;
  const std::string program_folder = fs::path(GANYMEDE_BINARY).parent_path().string();
  const fs::path printed_file = folder.path() / ".printed";
  const std::vector<TutorialCommand> commands = commands_in(lines_of(fs::path(GANYMEDE_SOURCE_DIR) / GetParam().file));
  EXPECT_GE(commands.size(), GetParam().commands) << "most of the page's commands were not found";
  for (const TutorialCommand& command : commands) {
    const fs::path script = folder.path() / ".command";
    std::ofstream(script) << "cd '" << folder.path().string() << "' || exit 9\n"
                          << "export PATH='" << program_folder
                          << "':\"$PATH\" CUDA_VISIBLE_DEVICES= GANYMEDE_NOW=2026-11-20T12:00:00Z\n"
                          << command.text << "\n";
    const int status =
        std::system(("sh '" + script.string() + "' > '" + printed_file.string() + "' 2>&1 < /dev/null").c_str());
    const std::vector<std::string> printed = lines_of(printed_file);
    ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0)
        << GetParam().file << ":" << command.line << ": " << command.text << "\nprinted\n"
        << joined(printed);
    if (command.varies) continue;
    EXPECT_TRUE(matches(command.shown, 0, printed, 0))
        << GetParam().file << ":" << command.line << ": " << command.text << "\nshown\n"
        << joined(command.shown) << "\nprinted\n"
        << joined(printed);
  }
}

// A command that stands in a block which does not run would not be noticed when it stops working.
TEST_P(Tutorial, OnlyGettingTheProgramAndOpeningAPageIsNotRun) {
  bool in_block = false;
  for (const std::string& line : lines_of(fs::path(GANYMEDE_SOURCE_DIR) / GetParam().file)) {
    if (line.starts_with("```")) {
      in_block = !in_block && !line.starts_with("```console");
    } else if (in_block) {
      EXPECT_FALSE(line.starts_with("ganymede ")) << line;
      EXPECT_FALSE(line.starts_with("$ ")) << line;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Pages, Tutorial,
                         testing::Values(RunPage{"docs/tutorial.md", 10}, RunPage{"docs/questions.md", 7}),
                         [](const auto& page) { return page.index == 0 ? "Tutorial" : "Questions"; });

}  // namespace
}  // namespace ganymede
