#pragma once
// Numbers as people write them.

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "common/json_fwd.hpp"

namespace ganymede {

/// A whole number as people write it: "50000000", "5e7", "50M", "1.5k", "2G" or "50_000_000". k, M, and G or B are
/// thousands, millions and billions. Returns nullopt for anything else, for a fraction such as "1.5", and from 2^53 on.
std::optional<std::int64_t> parse_count(std::string_view text);

/// Returns the node; throws ConfigError if it is a number above zero without a unit. The message suggests the units in
/// which people state such a value, `found "60", which has no unit; write "60h" or "60min"`: the example of the
/// quantity's own reader may be far from what is usual at this place.
const JsonNode& with_unit(const JsonNode& node, const std::vector<std::string>& units);

}  // namespace ganymede
