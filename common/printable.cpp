#include "common/printable.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

namespace ganymede {
namespace {

/// A character of UTF-8 and its number of bytes; 0 bytes if the text has none there.
struct Utf8 {
  std::uint32_t character = 0;
  std::size_t bytes = 0;
};

/// The character that begins at `at`, as RFC 3629 has it: no longer than needed, no surrogates, at most 0x10ffff.
Utf8 utf8_at(std::string_view text, std::size_t at) {
  const auto first = static_cast<unsigned char>(text[at]);
  if (first < 0x80) return {first, 1};
  const std::size_t bytes = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc0 || first > 0xf7 || at + bytes > text.size()) return {};
  std::uint32_t character = first & (0x7fU >> bytes);
  for (std::size_t i = 1; i < bytes; ++i) {
    const auto next = static_cast<unsigned char>(text[at + i]);
    if ((next & 0xc0U) != 0x80U) return {};
    character = character << 6U | (next & 0x3fU);
  }
  const std::uint32_t least = bytes == 4 ? 0x10000 : bytes == 3 ? 0x800 : 0x80;
  const bool surrogate = character >= 0xd800 && character < 0xe000;
  if (character < least || character > 0x10ffff || surrogate) return {};
  return {character, bytes};
}

/// True for controls beyond ASCII: of ISO 6429 (C1), and embedding, overriding and isolating of directions.
bool steers(std::uint32_t character) {
  return (character >= 0x80 && character < 0xa0) || (character >= 0x202a && character <= 0x202e) ||
         (character >= 0x2066 && character <= 0x2069);
}

}  // namespace

std::string printable(std::string_view text, std::string_view kept) {
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    const Utf8 found = utf8_at(text, i);
    const std::string_view bytes = text.substr(i, std::max<std::size_t>(found.bytes, 1));
    const bool control = found.character < 0x20 || found.character == 0x7f;
    if (found.bytes == 0)
      out += fmt::format("\\x{:02x}", static_cast<unsigned>(static_cast<unsigned char>(text[i])));
    else if ((control && kept.find(text[i]) == std::string_view::npos) || steers(found.character))
      out += fmt::format("\\u{:04x}", found.character);
    else
      out += bytes;
    i += bytes.size();
  }
  return out;
}

bool is_utf8(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t bytes = utf8_at(text, i).bytes;
    if (bytes == 0) return false;
    i += bytes;
  }
  return true;
}

}  // namespace ganymede
