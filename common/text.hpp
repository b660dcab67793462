#pragma once
// Helpers for messages.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ganymede {

/// The candidate with the smallest edit distance to `word`, if it is close enough for `word` to be a misspelling of it;
/// else nothing.
std::optional<std::string> nearest(std::string_view word, const std::vector<std::string>& candidates);

/// `; did you mean "NAME"?`, if there is a nearest.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates);

/// The names as an enumeration: "a", "a or b", "a, b or c".
std::string list_of(const std::vector<std::string>& names);

/// "1 price", "2 prices".
std::string counted(std::size_t number, std::string_view what);

/// A whole number with its thousands apart, for example "20,000,000".
std::string with_thousands(std::int64_t number);

}  // namespace ganymede
