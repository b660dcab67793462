#pragma once
// Words for error messages.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ganymede {

/// The candidate with the smallest edit distance to `word`, if it is close enough to be what was meant.
std::optional<std::string> nearest(std::string_view word, const std::vector<std::string>& candidates);

/// "a", "a or b", "a, b or c", for error messages.
std::string list_of(const std::vector<std::string>& names);

}  // namespace ganymede
