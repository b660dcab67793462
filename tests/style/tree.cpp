#include "tree.hpp"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>

namespace ganymede {
namespace {

namespace fs = std::filesystem;

Source read(const fs::path& file, const fs::path& root) {
  std::ifstream in(file, std::ios::binary);
  Source source{fs::relative(file, root).generic_string(), {std::istreambuf_iterator<char>(in), {}}, {}};
  std::istringstream text(source.text);
  for (std::string line; std::getline(text, line);) source.lines.push_back(line);
  return source;
}

}  // namespace

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
