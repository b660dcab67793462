#pragma once
// Texts in lines of a shell.

#include <string>

namespace ganymede::exports {

/// The text as one word of a POSIX shell, in single quotes.
inline std::string shell_word(const std::string& text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? "'\\''" : std::string(1, c);
  return out + "'";
}

}  // namespace ganymede::exports
