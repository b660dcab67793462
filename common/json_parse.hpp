#pragma once
// From text to a JSON document, before anyone asks what is in it. Only json.cpp needs this.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "common/json.hpp"

namespace ganymede {

/// "~" and "/" inside a key are written "~0" and "~1" (RFC 6901).
std::string escaped_key(std::string_view key);

/// `name` stands for the file in messages. Empty, malformed, with a duplicate key, a number that no double holds or
/// more than 200 levels of nesting: ConfigError, located.
nlohmann::json parse_document(std::string_view text, const std::string& name);

/// Writes the value to where its pointer says, which may be new; null removes what is there. No such place, nothing to
/// remove, a gap left in an array, a byte that is
/// not UTF-8, a duplicate key or too deep: ConfigError that begins with "--set".
void apply_override(nlohmann::json& content, const JsonOverride& given);

}  // namespace ganymede
