#include "common/printable.hpp"

#include <fmt/format.h>

#include <cstdint>

namespace ganymede {
namespace {

/// The character of two or three bytes of UTF-8 that begins at `at`; 0 if it has another number of bytes.
std::uint32_t short_character(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
  const std::uint32_t first = byte(at), second = byte(at + 1) & 0x3fU, third = byte(at + 2) & 0x3fU;
  if (first >= 0xc0 && first < 0xe0) return (first & 0x1fU) << 6U | second;
  if (first >= 0xe0 && first < 0xf0) return (first & 0x0fU) << 12U | second << 6U | third;
  return 0;
}

/// True for controls beyond ASCII: of ISO 6429 (C1), and embedding, overriding and isolating of directions.
bool steers(std::uint32_t character) {
  return (character >= 0x80 && character < 0xa0) || (character >= 0x202a && character <= 0x202e) ||
         (character >= 0x2066 && character <= 0x2069);
}

}  // namespace

std::string printable(std::string_view text, std::string_view kept) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if ((byte < 0x20 || byte == 0x7f) && kept.find(text[i]) == std::string_view::npos) {
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(byte));
    } else if (const std::uint32_t character = byte < 0x80 ? 0 : short_character(text, i); steers(character)) {
      out += fmt::format("\\u{:04x}", character);
      i += character < 0x800 ? 1 : 2;
    } else {
      out += text[i];
    }
  }
  return out;
}

}  // namespace ganymede
