#pragma once
// Helpers for messages, and for tables whose rows have names.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ganymede {

/// The names of rows, in their order.
template <class Rows>
std::vector<std::string> names_of(const Rows& rows) {
  std::vector<std::string> names;
  for (const auto& row : rows) names.emplace_back(row.name);
  return names;
}

/// The row of that name; null if there is none.
template <class Rows>
auto find_named(const Rows& rows, std::string_view name) {
  const auto found = std::find_if(std::begin(rows), std::end(rows), [&](const auto& row) { return row.name == name; });
  return found == std::end(rows) ? nullptr : &*found;
}

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
