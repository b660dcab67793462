#pragma once
// JSON as YAML 1.2 that people read and no content can break: block style, comments, every string quoted.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace ganymede {

/// A quoted YAML scalar that stands for `text` and for nothing else, in YAML 1.1 readers too. ConfigError if it is not
/// UTF-8.
std::string yaml_string(std::string_view text);

/// One document. Members whose name starts with '#' are comments: their text, line by line, stands where they stand.
/// Text of several lines that a literal block holds unchanged is written as one, any other string in quotes. Names are
/// the program's own, values may be anybody's.
std::string yaml(const nlohmann::ordered_json& document);

/// Comment lines at the left margin. What is not printable ASCII becomes '?', for a comment ends where a reader sees a
/// line break.
std::string yaml_comment(std::string_view text, int indent = 0);

}  // namespace ganymede
