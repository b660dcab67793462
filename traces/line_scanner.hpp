#pragma once
// Reads a line of foreign text from its beginning on, piece by piece, in a time that is linear in its length and with
// no recursion: std::regex takes a frame of the stack for each character, which a line of some 26,000 blanks exhausts.

#include <string_view>

namespace ganymede {

class LineScanner {
 public:
  explicit LineScanner(std::string_view line) : rest_(line) {}

  /// What has not been read.
  std::string_view rest() const { return rest_; }

  /// Reads `text`; false, and nothing is read: something else stands there.
  bool skip(std::string_view text) {
    if (!rest_.starts_with(text)) return false;
    rest_.remove_prefix(text.size());
    return true;
  }
  /// Reads all up to the first `text` and that too; false, and nothing is read: it does not occur.
  bool skip_past(std::string_view text) {
    const std::size_t at = rest_.find(text);
    if (at == std::string_view::npos) return false;
    rest_.remove_prefix(at + text.size());
    return true;
  }
  /// Reads one blank; false: none stands there.
  bool skip_blank() {
    const bool blank = !rest_.empty() && kBlanks.find(rest_.front()) != std::string_view::npos;
    if (blank) rest_.remove_prefix(1);
    return blank;
  }
  /// Reads all blanks; false: none stands there.
  bool skip_blanks() { return !read(rest_.find_first_not_of(kBlanks)).empty(); }
  /// The decimal digits that stand there, of any number; "": none.
  std::string_view digits() { return read(rest_.find_first_not_of("0123456789")); }
  /// What stands there up to the next blank.
  std::string_view word() { return read(rest_.find_first_of(kBlanks)); }
  /// What stands there up to `text`, which is not read; "": it does not occur, or stands there.
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

}  // namespace ganymede
