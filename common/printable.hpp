#pragma once
// Text of files that a user may not have written, made fit for a terminal.

#include <string>
#include <string_view>

namespace ganymede {

/// The text with each character that could steer a terminal written as "\\u001b": control characters of ASCII and of
/// ISO 6429, and those that change the direction of writing; and each byte that is not UTF-8, which some terminals take
/// for a control character too, as "\\x9b". Characters of `kept` stay.
std::string printable(std::string_view text, std::string_view kept = "");

bool is_utf8(std::string_view text);

}  // namespace ganymede
