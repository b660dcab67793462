#pragma once
// Text for a terminal of a given width. A width counts columns, one for each character of UTF-8.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace ganymede::report {

/// The width of files and pipes: nothing is wrapped.
inline constexpr std::size_t kAnyWidth = SIZE_MAX;

/// The width of a text: its number of characters of UTF-8.
std::size_t columns_of(const std::string& text);

/// The pieces between which a line may be broken. A piece is a word, a number with its unit ("5 s"), "<-" with the word
/// after it, or ".." with the word before it.
std::vector<std::string> unbreakable(const std::string& text);

/// Returns lines of at most `width` columns, at least one. A piece that is wider gets a line of its own.
std::vector<std::string> wrap_words(const std::string& text, std::size_t width);

/// Returns `head` with `text` wrapped to its right.
std::string hanging(const std::string& head, const std::string& text, std::size_t width);

/// Breaks lines of `text` that are wider than `width` between words; their continuations are indented by two more
/// spaces. Lines of tables, which have two spaces between words, stay as they are, because Table::text has fitted them.
std::string wrap_prose(const std::string& text, std::size_t width);

}  // namespace ganymede::report
