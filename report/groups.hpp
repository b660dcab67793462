#pragma once
// Runs that differ in their seed alone, and policies ranked by them, for people.

#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>

namespace ganymede {

/// Each group of a ganymede.sweep/1 as one row, median and interval; then its rankings.
std::string groups_text(const nlohmann::json& sweep, std::size_t width);

/// Places of a ganymede.sweep/1 whose groups differ in the GPUs that are used of each node.
std::set<std::string> parted_places(const nlohmann::json& sweep);
/// "1 x a", or "1 x a, 2 GPUs of each" where that tells it from others: of a group or a ranking.
std::string allocation_of(const nlohmann::json& of, const std::set<std::string>& parted);
/// ", 2 GPUs of each"; of several pools, given as an array, ", 2 and 4 GPUs of each".
std::string of_each_node(const nlohmann::json& gpus_per_node);

/// Of a ranking's "difference": of the medians, or the mean that older sweeps have alone.
double relative_difference(const nlohmann::json& difference);

}  // namespace ganymede
