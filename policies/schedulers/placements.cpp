#include "common/text.hpp"
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

const PlacementRule* find_placement(std::string_view name) { return find_named(placements(), name); }

std::vector<std::string> placement_names() { return names_of(placements()); }

}  // namespace ganymede::policies
