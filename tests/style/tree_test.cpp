// Rules about the text of the project's files that no compiler checks.

#include "tree.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <regex>
#include <set>
#include <string>
#include <vector>

namespace ganymede {
namespace {

namespace fs = std::filesystem;

/// Fails for each line of a file chosen by `where` in which `pattern` is found.
void expect_no_line(const std::string& pattern, const std::function<bool(const Source&)>& where,
                    const std::string& why) {
  const LinePattern expression(pattern);
  std::size_t searched = 0;
  for (const Source& source : tree()) {
    if (source.is_binary() || !where(source)) continue;
    ++searched;
    for (std::size_t i = 0; i < source.lines.size(); ++i) {
      if (expression.is_in(source.lines[i]))
        ADD_FAILURE() << source.path << ":" << i + 1 << ": " << why << ": " << source.lines[i];
    }
  }
  EXPECT_GT(searched, 0U) << "nothing was searched for " << pattern;
}

bool any(const Source&) { return true; }

TEST(Tree, OnlyTheEngineIncludesSimGrid) {
  const auto elsewhere = [](const Source& source) {
    return source.is_cpp() && !source.is_under("sim/engine/") && !source.is_under("tests/sim/engine/");
  };
  expect_no_line("#\\s*include\\s*[<\"](simgrid|xbt)", elsewhere, "SimGrid is included only under sim/engine");
}

TEST(Tree, IncludesAreWrittenFromTheRoot) {
  expect_no_line(
      "#\\s*include\\s*\"\\.", [](const Source& source) { return source.is_cpp(); }, "write includes from the root");
}

TEST(Tree, HeadersAreGuarded) {
  for (const Source& source : tree()) {
    if (!source.path.ends_with(".hpp")) continue;
    EXPECT_TRUE(source.text.starts_with("#pragma once")) << source.path;
  }
}

// Absolute paths of the machine on which something was written, and hosts of package registries, are of no use to a
// reader.
TEST(Tree, NamesNoMachine) {
  expect_no_line("(^|[\"'` =(])/([w]ork|[f]arm|[r]oot|[h]ome|[t]mp/[b]ash)[/_]", any, "a path of one machine");
  expect_no_line("https?:[/]/(deb|registry|files|security)\\.", any, "the host of a package registry");
}

TEST(Tree, EveryLibraryHasAReadme) {
  std::size_t libraries = 0;
  for (const Source& source : tree()) {
    if (!source.path.ends_with("/CMakeLists.txt") || source.text.find("ganymede_library(") == std::string::npos)
      continue;
    ++libraries;
    const fs::path readme = fs::path(GANYMEDE_SOURCE_DIR) / fs::path(source.path).parent_path() / "README.md";
    EXPECT_TRUE(fs::exists(readme)) << readme
                                    << " is missing: what lives there, what it may include, how to add one more";
  }
  EXPECT_GT(libraries, 0U);
}

TEST(Tree, EveryLibraryHasTests) {
  for (const Source& source : tree()) {
    if (!source.path.ends_with("/CMakeLists.txt") || source.text.find("ganymede_library(") == std::string::npos)
      continue;
    EXPECT_TRUE(fs::exists(fs::path(GANYMEDE_SOURCE_DIR) / "tests" / source.path))
        << "tests/" << source.path << " is missing";
  }
}

// A longer file holds more than one idea, and a function that does not fit a screen does more than one thing.
constexpr std::size_t kMaxFileLines = 400;
constexpr std::size_t kMaxFunctionLines = 60;

TEST(Tree, FilesAreShort) {
  for (const Source& source : tree()) {
    if (!source.is_cpp()) continue;
    EXPECT_LE(source.lines.size(), kMaxFileLines) << source.path;
  }
}

// By clang-format's layout: a function outside a class begins at column 0 with a line that is not a namespace, a type
// or a table, and ends with a closing brace at column 0.
TEST(Tree, FunctionsAreShort) {
  const LinePattern opening("^[A-Za-z_].*[{(,]$"), rest("^ .*[,(]$");
  const LinePattern other(
      "^(namespace|class|struct|enum|union|extern|constexpr|const|concept|static const|inline const(expr)?|TEST)\\b");
  for (const Source& source : tree()) {
    if (!source.is_cpp()) continue;
    for (std::size_t i = 0; i < source.lines.size(); ++i) {
      if (!opening.is_in(source.lines[i]) || other.is_in(source.lines[i])) continue;
      // A long signature goes on in indented lines.
      std::size_t last = i;
      while (!source.lines[last].ends_with('{') && last + 1 < source.lines.size() &&
             (last == i || rest.is_in(source.lines[last])))
        ++last;
      if (!source.lines[last].ends_with('{')) continue;
      const auto end = std::find(source.lines.begin() + static_cast<std::ptrdiff_t>(i), source.lines.end(), "}");
      const auto length = static_cast<std::size_t>(end - source.lines.begin()) - i + 1;
      EXPECT_LE(length, kMaxFunctionLines) << source.path << ":" << i + 1 << ": " << source.lines[i];
    }
  }
}

// A newcomer finds a name's folder in its namespace. `common` is the ground that all others stand on: its names are in
// `ganymede` itself, as are the helpers of tests that several folders share.
TEST(Tree, NamespacesAreFolders) {
  const std::set<std::string> ground = {"common", "support", "style", "install", "docs", "bench"};
  const std::regex opening("^namespace (ganymede[a-z_:]*) \\{$");
  std::size_t checked = 0;
  for (const Source& source : tree()) {
    if (!source.is_cpp()) continue;
    std::string folder = source.path.substr(source.is_under("tests/") ? std::string("tests/").size() : 0);
    folder = folder.substr(0, folder.find('/'));
    const std::string expected = ground.contains(folder) ? "ganymede" : "ganymede::" + folder;
    for (const std::string& line : source.lines) {
      std::smatch found;
      if (!std::regex_match(line, found, opening)) continue;
      ++checked;
      EXPECT_TRUE(found[1] == expected || found[1].str().starts_with(expected + "::"))
          << source.path << ": found " << found[1] << ", expected " << expected;
    }
  }
  EXPECT_GT(checked, 0U);
}

// A comment that begins with "Of" continues the name below it; a reader needs a sentence.
TEST(Tree, CommentsCanBeReadAlone) {
  expect_no_line(
      "^\\s*//+[/<!]*\\s+Of\\b",
      [](const Source& source) {
        return source.is_cpp() || source.path.ends_with(".js") || source.path.ends_with(".cu") ||
               source.path.ends_with(".inl");
      },
      "a comment that begins with Of");
}

// Tests and programs run from a clone alone.
TEST(Tree, NothingNeedsWhatIsBesideTheRepository) {
  const auto runs = [](const Source& source) { return !source.path.ends_with(".md"); };
  expect_no_line("[.][.]/shared", runs, "needs a folder beside the repository");
}

}  // namespace
}  // namespace ganymede
