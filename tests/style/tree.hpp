#pragma once
// The text of the tree, for rules about it.

#include <string>
#include <string_view>
#include <vector>

namespace ganymede {

struct Source {
  std::string path;  ///< from the root, with slashes
  std::string text;
  std::vector<std::string> lines;

  bool is_under(std::string_view folder) const { return path.rfind(folder, 0) == 0; }
  bool is_cpp() const { return path.ends_with(".cpp") || path.ends_with(".hpp"); }
  bool is_binary() const { return text.find('\0') != std::string::npos; }
};

/// Everything that is ours: not what is built, written by a run, or kept by tools in hidden folders (.ci is ours).
const std::vector<Source>& tree();

}  // namespace ganymede
