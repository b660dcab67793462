#include <algorithm>

#include "policies/schedulers/placement.hpp"

// The register of placements: one row for each, which is defined in placement_NAME.cpp.
// clang-format off
#define GANYMEDE_PLACEMENTS(ROW) \
  ROW(consolidate) \
  ROW(spread) \
  ROW(topology)
// clang-format on

namespace ganymede::policies {

#define GANYMEDE_DECLARE(name) PlacementRule name##_placement();
GANYMEDE_PLACEMENTS(GANYMEDE_DECLARE)
#undef GANYMEDE_DECLARE

std::span<const PlacementRule> placements() {
#define GANYMEDE_CALL(name) name##_placement(),
  static const PlacementRule all[] = {GANYMEDE_PLACEMENTS(GANYMEDE_CALL)};
#undef GANYMEDE_CALL
  return all;
}

const PlacementRule* find_placement(std::string_view name) {
  const auto all = placements();
  const auto found = std::find_if(all.begin(), all.end(), [&](const PlacementRule& row) { return row.name == name; });
  return found == all.end() ? nullptr : &*found;
}

std::vector<std::string> placement_names() {
  std::vector<std::string> names;
  for (const PlacementRule& rule : placements()) names.emplace_back(rule.name);
  return names;
}

}  // namespace ganymede::policies
