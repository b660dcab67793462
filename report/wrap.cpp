#include "report/wrap.hpp"

#include <algorithm>
#include <cctype>
#include <sstream>

namespace ganymede::report {
namespace {

bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

/// True if a line must not be broken between two words, for example between a number and its unit: "5 s", "2 x", "1.0
/// %".
bool belongs_to(const std::string& left, const std::string& right) {
  if (left == "<-" || right == "..") return true;
  const auto first = static_cast<unsigned char>(right.front());
  return is_digit(left.back()) && (std::isalpha(first) != 0 || first == '%' || first >= 0x80U);
}

}  // namespace

std::size_t columns_of(const std::string& text) {
  // Counts the bytes that begin a character.
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](unsigned char c) { return (c & 0xC0U) != 0x80U; }));
}

std::vector<std::string> unbreakable(const std::string& text) {
  std::vector<std::string> pieces;
  std::istringstream words(text);
  std::string last;
  for (std::string word; words >> word; last = word) {
    if (!pieces.empty() && belongs_to(last, word))
      pieces.back() += " " + word;
    else
      pieces.push_back(word);
  }
  return pieces;
}

std::vector<std::string> wrap_words(const std::string& text, std::size_t width) {
  if (columns_of(text) <= width) return {text};
  std::vector<std::string> lines;
  for (const std::string& piece : unbreakable(text)) {
    if (!lines.empty() && columns_of(lines.back()) + 1 + columns_of(piece) <= width)
      lines.back() += " " + piece;
    else
      lines.push_back(piece);
  }
  return lines.empty() ? std::vector<std::string>{""} : lines;
}

std::string hanging(const std::string& head, const std::string& text, std::size_t width) {
  const std::size_t indent = columns_of(head);
  // A head that takes nearly the whole width leaves no room for words beside it.
  if (width == kAnyWidth || indent + 20 > width) return head + text + "\n";
  std::string out;
  for (const std::string& line : wrap_words(text, width - indent))
    out += (out.empty() ? head : std::string(indent, ' ')) + line + "\n";
  return out;
}

std::string wrap_prose(const std::string& text, std::size_t width) {
  std::string out;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t indent = std::min(line.find_first_not_of(' '), line.size());
    if (columns_of(line) <= width || line.find("  ", indent) != std::string::npos || indent + 20 > width) {
      out += line + "\n";
      continue;
    }
    bool first = true;
    for (const std::string& part : wrap_words(line.substr(indent), width - indent - 2)) {
      out += std::string(first ? indent : indent + 2, ' ') + part + "\n";
      first = false;
    }
  }
  if (!text.ends_with('\n') && !out.empty()) out.pop_back();
  return out;
}

}  // namespace ganymede::report
