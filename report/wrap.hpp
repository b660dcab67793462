#pragma once
// Text for a terminal of a given width. Widths are in columns, one for each character of UTF-8.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace ganymede {

/// Nothing is wrapped: files, pipes.
inline constexpr std::size_t kAnyWidth = SIZE_MAX;

std::size_t columns_of(const std::string& text);

/// The pieces between which a line may be broken: words, a number and its unit as one, a mark with what it marks.
std::vector<std::string> unbreakable(const std::string& text);

/// Lines of at most `width` columns; a piece that is wider stands alone. At least one line.
std::vector<std::string> wrap_words(const std::string& text, std::size_t width);

/// `head`, then `text` wrapped beside it.
std::string hanging(const std::string& head, const std::string& text, std::size_t width);

/// The lines of `text` that are too wide, broken between words and indented by two more. Lines with columns, which two
/// spaces between words tell, are left as they are: tables are fitted by Table::text.
std::string wrap_prose(const std::string& text, std::size_t width);

}  // namespace ganymede
