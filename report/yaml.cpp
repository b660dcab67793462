#include "report/yaml.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>

#include "common/errors.hpp"

namespace ganymede {
namespace {

using OrderedJson = nlohmann::ordered_json;

bool printable(char c) { return c >= ' ' && c <= '~'; }

/// The next code point of UTF-8. JSON is checked when it is read, flags are not.
std::uint32_t next_code_point(std::string_view text, std::size_t& at) {
  const auto fail = [&] { throw ConfigError(fmt::format("byte {} of a text is not UTF-8", at)); };
  const auto byte = [&](std::size_t i) -> std::uint32_t {
    if (i >= text.size()) fail();
    return static_cast<unsigned char>(text[i]);
  };
  const std::uint32_t first = byte(at);
  const std::size_t length = first < 0x80 ? 1 : first < 0xC2 ? 0 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  if (length == 0 || first > 0xF4) fail();
  std::uint32_t point = length == 1 ? first : first & (0x7FU >> length);
  for (std::size_t i = 1; i < length; ++i) {
    const std::uint32_t next = byte(at + i);
    if ((next & 0xC0U) != 0x80U) fail();
    point = point << 6U | (next & 0x3FU);
  }
  constexpr std::uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  if (point < kLeast[length] || point > 0x10FFFF || (point >= 0xD800 && point <= 0xDFFF)) fail();
  at += length;
  return point;
}

/// A literal block holds it, byte for byte: printable lines, the first not indented, one line break at the end.
bool fits_block(const std::string& text) {
  if (text.size() < 2 || text.back() != '\n' || text[text.size() - 2] == '\n' || text.front() == ' ' ||
      text.front() == '\n' || std::count(text.begin(), text.end(), '\n') < 2)
    return false;
  return std::all_of(text.begin(), text.end(), [](char c) { return c == '\n' || printable(c); });
}

std::string block(const std::string& text, int indent) {
  std::string out = "|\n";
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = text.find('\n', begin);
    const std::string line = text.substr(begin, end - begin);
    out += line.empty() ? "\n" : std::string(static_cast<std::size_t>(indent), ' ') + line + "\n";
    begin = end + 1;
  }
  return out;
}

std::string name_of(const std::string& key) {
  const bool plain = !key.empty() && std::all_of(key.begin(), key.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
           c == '.' || c == '/';
  });
  const bool letter = plain && key.front() != '-' && (key.front() < '0' || key.front() > '9');
  return letter ? key : yaml_string(key);
}

std::string scalar(const OrderedJson& value, int indent) {
  if (value.is_string()) {
    const auto& text = value.get_ref<const std::string&>();
    return fits_block(text) ? block(text, indent) : yaml_string(text) + "\n";
  }
  return value.dump() + "\n";
}

void write(std::string& out, const OrderedJson& value, int indent);

void write_object(std::string& out, const OrderedJson& object, int indent, bool first_is_placed) {
  const std::string margin(static_cast<std::size_t>(indent), ' ');
  for (const auto& [key, value] : object.items()) {
    if (key.starts_with('#')) {
      out += (first_is_placed ? "\n" : "") + yaml_comment(value.get<std::string>(), indent);
      if (first_is_placed) out += margin;
      continue;
    }
    if (!first_is_placed) out += margin;
    first_is_placed = false;
    out += name_of(key) + ":";
    write(out, value, indent);
  }
}

void write_array(std::string& out, const OrderedJson& array, int indent) {
  const std::string margin(static_cast<std::size_t>(indent), ' ');
  for (const OrderedJson& value : array) {
    out += margin + "- ";
    if (value.is_object() && !value.empty())
      write_object(out, value, indent + 2, true);
    else
      out += value.is_structured() ? value.dump() + "\n" : scalar(value, indent + 2);
  }
}

/// What follows a name and its colon.
void write(std::string& out, const OrderedJson& value, int indent) {
  if (value.is_structured() && value.empty()) {
    out += value.is_object() ? " {}\n" : " []\n";
  } else if (value.is_object()) {
    out += "\n";
    write_object(out, value, indent + 2, false);
  } else if (value.is_array()) {
    out += "\n";
    write_array(out, value, indent + 2);
  } else {
    out += " " + scalar(value, indent + 2);
  }
}

}  // namespace

std::string yaml_string(std::string_view text) {
  std::string out = "\"";
  for (std::size_t at = 0; at < text.size();) {
    const std::uint32_t point = next_code_point(text, at);
    if (point == '"' || point == '\\')
      out += {'\\', static_cast<char>(point)};
    else if (point < 0x80 && printable(static_cast<char>(point)))
      out += static_cast<char>(point);
    else if (point == '\n')
      out += "\\n";
    else if (point == '\t')
      out += "\\t";
    else if (point <= 0xFF)
      out += fmt::format("\\x{:02x}", point);
    else if (point <= 0xFFFF)
      out += fmt::format("\\u{:04x}", point);
    else
      out += fmt::format("\\U{:08x}", point);
  }
  return out + "\"";
}

std::string yaml_comment(std::string_view text, int indent) {
  std::string out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string line(text.substr(0, end));
    std::replace_if(
        line.begin(), line.end(), [](char c) { return !printable(c); }, '?');
    out += std::string(static_cast<std::size_t>(indent), ' ') + (line.empty() ? "#" : "# " + line) + "\n";
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

std::string yaml(const OrderedJson& document) {
  std::string out;
  write_object(out, document, 0, false);
  return out;
}

}  // namespace ganymede
