// Rules for every page of the documentation: short lines, and links that lead somewhere.

#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace ganymede {
namespace {

namespace fs = std::filesystem;

const fs::path kRoot = GANYMEDE_SOURCE_DIR;
constexpr std::size_t kTableColumnsMax = 180;

/// A Markdown file: its path from the root of the tree, and its lines.
struct Page {
  fs::path path;
  std::vector<std::string> lines;
};

Page read_page(const fs::path& file) {
  std::ifstream in(file);
  Page page{fs::relative(file, kRoot), {}};
  for (std::string line; std::getline(in, line);) page.lines.push_back(line);
  return page;
}

/// Markdown files below `folder`.
std::vector<Page> pages_below(const std::string& folder) {
  std::vector<Page> pages;
  for (const auto& entry : fs::recursive_directory_iterator(kRoot / folder))
    if (entry.path().extension() == ".md") pages.push_back(read_page(entry.path()));
  std::sort(pages.begin(), pages.end(), [](const Page& a, const Page& b) { return a.path < b.path; });
  return pages;
}

/// Columns of a line of UTF-8: characters, not bytes.
std::size_t columns(std::string_view line) {
  return static_cast<std::size_t>(
      std::count_if(line.begin(), line.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

void expect_columns_at_most(const Page& page, std::size_t most) {
  for (std::size_t i = 0; i < page.lines.size(); ++i) {
    const std::string& line = page.lines[i];
    // One long word, such as an address, cannot be broken. Nor can the row of a table.
    if (line.find(' ') == std::string::npos) continue;
    EXPECT_LE(columns(line), line.starts_with("|") ? kTableColumnsMax : most)
        << page.path.string() << ":" << i + 1 << ": " << line;
  }
}

TEST(Readme, IsShort) {
  const Page readme = read_page(kRoot / "README.md");
  EXPECT_LT(readme.lines.size(), 120U);
  expect_columns_at_most(readme, 120);
}

/// The fenced blocks of a page that begin with exactly this line.
std::vector<std::string> blocks_in(const Page& page, const std::string& opening) {
  std::vector<std::string> blocks;
  bool inside = false, wanted = false;
  for (const std::string& line : page.lines) {
    if (line.starts_with("```")) {
      inside = !inside;
      wanted = inside && line == opening;
      if (wanted) blocks.emplace_back();
    } else if (wanted) {
      blocks.back() += line + "\n";
    }
  }
  return blocks;
}

// A test of the tutorial compares its figures with what the program prints.
TEST(Readme, ShowsTheFiguresOfTheTutorial) {
  std::string tutorial;
  for (const std::string& line : read_page(kRoot / "docs/tutorial.md").lines) tutorial += line + "\n";
  std::size_t tables = 0;
  for (const std::string& block : blocks_in(read_page(kRoot / "README.md"), "```")) {
    if (!block.starts_with("what ")) continue;
    ++tables;
    EXPECT_NE(tutorial.find(block), std::string::npos) << "not in docs/tutorial.md:\n" << block;
  }
  EXPECT_EQ(tables, 1U);
}

TEST(StepTracePage, ShowsAFileThatTheProgramAccepts) {
  const std::vector<std::string> examples = blocks_in(read_page(kRoot / "docs/step-trace.md"), "```json");
  ASSERT_EQ(examples.size(), 1U);
  std::string folder = (fs::temp_directory_path() / "ganymede-docs-XXXXXX").string();
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  std::ofstream(fs::path(folder) / "trace.json") << examples.front();
  const std::string program = GANYMEDE_BINARY;
  EXPECT_EQ(std::system(("cd '" + folder + "' && '" + program + "' example scenario -o scenario.json && '" + program +
                         "' simulate scenario.json --set /workload/trace=trace.json -o result.txt")
                            .c_str()),
            0);
  fs::remove_all(folder);
}

TEST(Documentation, HasLinesOfAtMost100Columns) {
  for (const char* folder : {"docs", "studies", "plan"})
    for (const Page& page : pages_below(folder)) expect_columns_at_most(page, 100);
}

/// The anchor of a heading: lower case, without punctuation, with hyphens for spaces.
std::string anchor_of(const std::string& heading) {
  std::string anchor;
  for (const char c : heading) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == ' ') anchor += '-';
    if (std::isalnum(byte) != 0 || c == '-' || c == '_' || byte >= 0x80U) anchor += static_cast<char>(std::tolower(c));
  }
  return anchor;
}

std::set<std::string> anchors_in(const Page& page) {
  std::set<std::string> anchors;
  bool in_code = false;
  for (const std::string& line : page.lines) {
    if (line.starts_with("```")) in_code = !in_code;
    if (in_code || !line.starts_with("#")) continue;
    anchors.insert(anchor_of(line.substr(std::min(line.size(), line.find_first_not_of("# ")))));
  }
  return anchors;
}

/// The targets of a page's links, `[text](target)`, code left out. A link's text may be broken over two lines.
std::vector<std::string> links_in(const Page& page) {
  static const std::regex code("`[^`]*`"), link("\\]\\(([^) ]+)\\)");
  std::string text;
  bool in_code = false;
  for (const std::string& line : page.lines) {
    if (line.starts_with("```")) in_code = !in_code;
    if (!in_code) text += line + "\n";
  }
  text = std::regex_replace(text, code, "");
  std::vector<std::string> links;
  for (std::sregex_iterator at(text.begin(), text.end(), link), end; at != end; ++at) links.push_back((*at)[1]);
  return links;
}

TEST(Documentation, LinksLeadSomewhere) {
  std::vector<Page> pages = {read_page(kRoot / "README.md"), read_page(kRoot / "CONTRIBUTING.md")};
  for (const char* folder : {"docs", "studies", "plan", "bench", "traces"})
    for (Page& page : pages_below(folder)) pages.push_back(std::move(page));
  std::size_t links = 0;
  for (const Page& page : pages) {
    for (const std::string& target : links_in(page)) {
      if (target.find("://") != std::string::npos) continue;
      ++links;
      const std::string file = target.substr(0, target.find('#'));
      const fs::path path = file.empty() ? kRoot / page.path : kRoot / page.path.parent_path() / file;
      EXPECT_TRUE(fs::exists(path)) << page.path.string() << ": " << target;
      if (target.find('#') == std::string::npos || !fs::exists(path)) continue;
      EXPECT_TRUE(anchors_in(read_page(path)).contains(target.substr(target.find('#') + 1)))
          << page.path.string() << ": no heading for " << target;
    }
  }
  EXPECT_GT(links, 30U) << "most links were not found";
}

// Files that sources and READMEs name, such as docs/step-trace.md.
TEST(Documentation, PagesThatTheTreeNamesExist) {
  static const std::regex name("docs/[a-z-]+\\.md");
  std::map<std::string, std::string> named;
  for (const auto& folder : fs::directory_iterator(kRoot)) {
    const std::string top = folder.path().filename().string();
    if (!folder.is_directory() || top.starts_with(".") || top.starts_with("build") || top == "out") continue;
    for (const auto& entry : fs::recursive_directory_iterator(folder.path())) {
      const std::string extension = entry.path().extension().string();
      if (extension != ".md" && extension != ".hpp" && extension != ".cpp") continue;
      for (const std::string& line : read_page(entry.path()).lines)
        for (std::sregex_iterator at(line.begin(), line.end(), name), end; at != end; ++at)
          named.emplace(at->str(), fs::relative(entry.path(), kRoot).string());
    }
  }
  EXPECT_GT(named.size(), 5U);
  for (const auto& [page, by] : named) EXPECT_TRUE(fs::exists(kRoot / page)) << by << " names " << page;
}

}  // namespace
}  // namespace ganymede
