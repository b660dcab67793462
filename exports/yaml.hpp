#pragma once
// JSON as YAML for other tools, written by yaml-cpp: block style, comments, every string in quotes.

#include <string>
#include <string_view>

#include "common/json_fwd.hpp"

namespace ganymede::exports {

/// Writes one YAML document. A member whose name starts with '#' is a comment: its text stands above the next member,
/// for example {"#size": "in GiB", "size": 4} becomes "# in GiB" and "size: 4". Text of several lines becomes a literal
/// block if that keeps it byte for byte; any other string is in double quotes, with all but printable ASCII escaped, so
/// that no content can be read as anything else. Throws ConfigError for text that is not UTF-8.
std::string write_yaml(const OrderedJson& document);

/// Writes comment lines at the left margin. Characters other than printable ASCII become '?', because YAML readers
/// disagree on which of them end a line, and with it the comment.
std::string write_yaml_comment(std::string_view text);

}  // namespace ganymede::exports
