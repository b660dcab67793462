#pragma once
// Parsing of JSON text into a document, and overrides of its values. Only json.cpp includes this.

#include <string>
#include <string_view>

#include "common/json.hpp"
#include "common/json_value.hpp"

namespace ganymede {

/// The key as a JSON pointer holds it: "~" and "/" become "~0" and "~1" (RFC 6901).
std::string escaped_key(std::string_view key);

/// Parses the text, which messages call `name`. Throws a located ConfigError if it is empty, malformed, has a duplicate
/// key, a number out of a double's range or more than 200 levels of nesting.
Json parse_document(std::string_view text, const std::string& name);

/// Writes the value to where its pointer says, which may be a new member or array element; null removes what is there.
/// Throws ConfigError that begins with "--set" if the pointer leads nowhere, there is nothing to remove, a gap would be
/// left in an array, or the value is not UTF-8, has a duplicate key or is nested too deep.
void apply_override(Json& content, const JsonOverride& given);

}  // namespace ganymede
