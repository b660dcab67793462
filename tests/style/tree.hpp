#pragma once
// The text of the project's files, for tests that check rules about it.

#include <string>
#include <string_view>
#include <vector>

namespace ganymede {

struct Source {
  std::string path;  ///< relative to the root of the project, with slashes
  std::string text;
  std::vector<std::string> lines;

  bool is_under(std::string_view folder) const { return path.rfind(folder, 0) == 0; }
  bool is_cpp() const { return path.ends_with(".cpp") || path.ends_with(".hpp"); }
  bool is_binary() const { return text.find('\0') != std::string::npos; }
};

/// All files of the project, without build outputs, outputs of runs, and hidden folders other than .ci.
const std::vector<Source>& tree();

}  // namespace ganymede
