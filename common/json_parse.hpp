#pragma once
// Parsing of JSON text into a document or, of a text that is larger than the memory, into the parts that are needed;
// and overrides of a document's values. Files of this project are read by json.hpp.

#include <cstddef>
#include <functional>
#include <iosfwd>
#include <string>
#include <string_view>

#include "common/json.hpp"
#include "common/json_value.hpp"
#include "common/units.hpp"

namespace ganymede {

/// The key as a JSON pointer holds it: "~" and "/" become "~0" and "~1" (RFC 6901).
std::string escaped_key(std::string_view key);

/// The memory that the program takes at its peak to read a document, from a count of the text's values; what was
/// measured for documents of one kind of value stands in docs/reliability.md.
Bytes memory_to_read(std::string_view text);

/// Parses the text, which messages call `name`. Throws BudgetExceeded before it begins if that would take more memory
/// than --max-memory, and a located ConfigError if it is empty, malformed, has a duplicate
/// key, a number out of a double's range or more than 200 levels of nesting.
Json parse_document(std::string_view text, const std::string& name);

/// Says of an object or array inside a text, once it is read, whether it is needed. `depth` values are around it, `top`
/// is the key of the outermost one that has a key, and `key` its own; both are empty in arrays.
using JsonFilter = std::function<bool(std::size_t depth, const std::string& top, const std::string& key, const Json&)>;

/// Parses a text of any size, in which // comments may stand, in the memory that its needed parts take. Throws
/// JsonError for text that is not JSON, with its place.
Json parse_needed(std::istream& text, const JsonFilter& needed);

/// Writes the value to where its pointer says, which may be a new member or array element; null removes what is there.
/// Throws ConfigError that begins with "--set" if the pointer leads nowhere, there is nothing to remove, a gap would be
/// left in an array, or the value is not UTF-8, has a duplicate key or is nested too deep.
void apply_override(Json& content, const JsonOverride& given);

}  // namespace ganymede
