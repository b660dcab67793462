#pragma once
// Groups of runs that differ in their seed alone, and rankings of policies, as text.

#include <set>
#include <string>

#include "common/json_fwd.hpp"

namespace ganymede::report {

/// Returns a table with one row for each group of a ganymede.sweep/1 (median and interval over its seeds), then the
/// sweep's rankings.
std::string groups_text(const Json& sweep, std::size_t width);

/// The places (platform and region) of a ganymede.sweep/1 whose groups differ in how many GPUs of each node they use.
std::set<std::string> parted_places(const Json& sweep);
/// The nodes of a group or a ranking: "1 x a", or "1 x a, 2 GPUs of each" if its place is one of `parted`.
std::string allocation_of(const Json& group, const std::set<std::string>& parted);
/// ", 2 GPUs of each"; for several pools, given as an array, ", 2 and 4 GPUs of each".
std::string of_each_node(const Json& gpus_per_node);

/// The relative difference of the medians in a ranking's "difference"; older sweeps have only that of the means.
double relative_difference(const Json& difference);

}  // namespace ganymede::report
