#pragma once
// Amounts of money as people write them.

#include <string_view>

#include "common/json_fwd.hpp"
#include "common/units.hpp"

namespace ganymede::platforms {

/// Reads "12.34USD", with at most six decimals; also "$12.34" and "12.34 USD". `per` names what the amount is for, such
/// as "kWh": then "12.34USD/kWh" is the same. `example` is an amount that would be usual at this place, for errors.
MicroUsd read_amount(const JsonNode& node, std::string_view per, std::string_view example);

}  // namespace ganymede::platforms
