#pragma once
// Reads a line of another program's output piece by piece, in linear time and without recursion. std::regex is not used
// because it takes a stack frame for each character, and a line of some 26,000 blanks exhausts the stack.

#include <string_view>

namespace ganymede::traces {

class LineScanner {
 public:
  explicit LineScanner(std::string_view line) : rest_(line) {}

  /// The part of the line that has not been read.
  std::string_view rest() const { return rest_; }

  /// Reads `text` if it comes next; else reads nothing and returns false.
  bool skip(std::string_view text) {
    if (!rest_.starts_with(text)) return false;
    rest_.remove_prefix(text.size());
    return true;
  }
  /// Reads up to and including the next `text`; if it does not occur, reads nothing and returns false.
  bool skip_past(std::string_view text) {
    const std::size_t at = rest_.find(text);
    if (at == std::string_view::npos) return false;
    rest_.remove_prefix(at + text.size());
    return true;
  }
  /// Reads one blank; returns false if none comes next.
  bool skip_blank() {
    const bool blank = !rest_.empty() && kBlanks.find(rest_.front()) != std::string_view::npos;
    if (blank) rest_.remove_prefix(1);
    return blank;
  }
  /// Reads all blanks that come next; returns false if there is none.
  bool skip_blanks() { return !read(rest_.find_first_not_of(kBlanks)).empty(); }
  /// Reads the decimal digits that come next, however many; empty if there is none.
  std::string_view digits() { return read(rest_.find_first_not_of("0123456789")); }
  /// Reads up to the next blank, or to the end.
  std::string_view word() { return read(rest_.find_first_of(kBlanks)); }
  /// Reads up to the next `text`, which stays; empty if it does not occur or comes next.
  std::string_view word_until(std::string_view text) {
    const std::size_t at = rest_.find(text);
    return at == std::string_view::npos ? std::string_view() : read(at);
  }

 private:
  static constexpr std::string_view kBlanks = " \t\r\v\f\n";

  std::string_view read(std::size_t count) {
    const std::string_view piece = rest_.substr(0, count);
    rest_.remove_prefix(piece.size());
    return piece;
  }

  std::string_view rest_;
};

}  // namespace ganymede::traces
