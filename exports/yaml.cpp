#include "exports/yaml.hpp"

#include <yaml-cpp/emitter.h>
#include <yaml-cpp/emittermanip.h>

#include <algorithm>
#include <sstream>
#include <vector>

#include "common/errors.hpp"
#include "common/json_value.hpp"

namespace ganymede::exports {
namespace {
bool is_printable(char c) { return c >= ' ' && c <= '~'; }

/// yaml-cpp would replace bytes that are not UTF-8. Text from JSON files is checked when it is read; flags are not.
void check_utf8(const std::string& text) {
  try {
    (void)OrderedJson(text).dump();
  } catch (const JsonError& error) {
    throw ConfigError(std::string("found text that is not UTF-8: ") + error.what());
  }
}

/// True if a literal block keeps the text byte for byte: printable lines, at least two of them, the first neither empty
/// nor indented, and exactly one line break at the end.
bool fits_literal_block(const std::string& text) {
  if (text.size() < 2 || text.back() != '\n' || text[text.size() - 2] == '\n' || text.front() == ' ' ||
      text.front() == '\n' || std::count(text.begin(), text.end(), '\n') < 2)
    return false;
  return std::all_of(text.begin(), text.end(), [](char c) { return c == '\n' || is_printable(c); });
}

std::string printable_comment(std::string_view text) {
  while (text.ends_with('\n')) text.remove_suffix(1);
  std::string out(text);
  std::replace_if(
      out.begin(), out.end(), [](char c) { return c != '\n' && !is_printable(c); }, '?');
  return out;
}

void emit_string(YAML::Emitter& out, const std::string& text) {
  check_utf8(text);
  // The block style adds the last line break itself.
  if (fits_literal_block(text))
    out << YAML::Literal << text.substr(0, text.size() - 1);
  else
    out << YAML::DoubleQuoted << text;
}

void emit_value(YAML::Emitter& out, const OrderedJson& value) {
  if (value.is_structured() && value.empty()) out << YAML::Flow;
  if (value.is_object()) {
    out << YAML::BeginMap;
    for (const auto& [name, member] : value.items()) {
      if (name.starts_with('#')) {
        if (name != value.begin().key()) out << YAML::Newline;
        out << YAML::Comment(printable_comment(member.get<std::string>()));
        continue;
      }
      out << YAML::Key << name << YAML::Value;
      emit_value(out, member);
    }
    out << YAML::EndMap;
  } else if (value.is_array()) {
    out << YAML::BeginSeq;
    for (const OrderedJson& element : value) emit_value(out, element);
    out << YAML::EndSeq;
  } else if (value.is_string()) {
    emit_string(out, value.as_string());
  } else if (value.is_null()) {
    out << YAML::Null;
  } else {
    out << value.dump();  // a number or a boolean, which YAML writes as JSON does
  }
}

/// The emitter writes every comment that begins a line at the left margin. Nothing else can begin with '#' there, since
/// literal blocks are indented. Each comment gets the indentation of the line below it.
std::string with_indented_comments(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  std::size_t indentation = 0;
  for (auto line = lines.rbegin(); line != lines.rend(); ++line) {
    if (!line->starts_with('#')) {
      if (!line->empty()) indentation = line->find_first_not_of(' ');
      continue;
    }
    line->erase(line->find_last_not_of(' ') + 1);
    line->insert(0, indentation, ' ');
  }
  std::string out;
  for (const std::string& line : lines) out += line + "\n";
  return out;
}

}  // namespace

std::string write_yaml(const OrderedJson& document) {
  YAML::Emitter out;
  out.SetOutputCharset(YAML::EscapeNonAscii);
  emit_value(out, document);
  return with_indented_comments(out.c_str());
}

std::string write_yaml_comment(std::string_view text) {
  YAML::Emitter out;
  out << YAML::Comment(printable_comment(text));
  return with_indented_comments(out.c_str());
}

}  // namespace ganymede::exports
