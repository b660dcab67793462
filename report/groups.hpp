#pragma once
// Runs that differ in their seed alone, and policies ranked by them, for people.

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace ganymede {

/// Each group of a ganymede.sweep/1 as one row, median and interval; then its rankings.
std::string groups_text(const nlohmann::json& sweep, std::size_t width);

/// Of a ranking's "difference": of the medians, or the mean that older sweeps have alone.
double relative_difference(const nlohmann::json& difference);

}  // namespace ganymede
