#include "tree.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <stdexcept>

namespace ganymede {
namespace {

namespace fs = std::filesystem;

Source read(const fs::path& file, const fs::path& root) {
  Source source{file.lexically_relative(root).generic_string(), std::string(fs::file_size(file), '\0'), {}};
  std::ifstream(file, std::ios::binary).read(source.text.data(), static_cast<std::streamsize>(source.text.size()));
  for (std::size_t begin = 0; begin < source.text.size();) {
    const std::size_t end = std::min(source.text.find('\n', begin), source.text.size());
    source.lines.push_back(source.text.substr(begin, end - begin));
    begin = end + 1;
  }
  return source;
}

}  // namespace

LinePattern::LinePattern(const std::string& pattern) {
  if (regcomp(&compiled_, pattern.c_str(), REG_EXTENDED | REG_NOSUB) != 0)
    throw std::invalid_argument("no regular expression: " + pattern);
}

LinePattern::~LinePattern() { regfree(&compiled_); }

bool LinePattern::is_in(const std::string& line) const { return regexec(&compiled_, line.c_str(), 0, nullptr, 0) == 0; }

const std::vector<Source>& tree() {
  static const std::vector<Source> sources = [] {
    const fs::path root = GANYMEDE_SOURCE_DIR;
    const std::set<std::string> skipped = {"build", "out", "bundle", "local", "shared"};
    std::vector<Source> found;
    for (auto it = fs::recursive_directory_iterator(root); it != fs::recursive_directory_iterator(); ++it) {
      const std::string name = it->path().filename().string();
      const bool at_root = it.depth() == 0;
      if (it->is_directory() && (it->is_symlink() || (name.starts_with(".") && name != ".ci") ||
                                 (at_root && (skipped.contains(name) || name.starts_with("build"))))) {
        it.disable_recursion_pending();
      } else if (it->is_regular_file() && name != ".git") {  // a file in a linked working tree
        found.push_back(read(it->path(), root));
      }
    }
    return found;
  }();
  return sources;
}

}  // namespace ganymede
