#pragma once
// What evaluate_group() returns, read from a file that others may have written.

#include <cstddef>

#include "common/json_fwd.hpp"

namespace ganymede::plan {

/// Throws ConfigError, located, unless `node` is an outcome of a unit of `members` candidates as PlanUnits::evaluate()
/// returns it.
void check_outcome(const JsonNode& node, std::size_t members);

}  // namespace ganymede::plan
