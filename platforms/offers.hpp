#pragma once
// Instances at their prices, selected and sorted: the rows that `ganymede catalog` prints.

#include <string>
#include <vector>

#include "common/json_fwd.hpp"
#include "platforms/platform.hpp"

namespace ganymede::platforms {

// The keys of OfferChoice::sort.
inline constexpr const char* kByGpuHour = "usd-per-gpu-hour";
inline constexpr const char* kByHour = "usd-per-hour";

struct OfferChoice {
  std::vector<std::string> gpus = {}, regions = {}, markets = {}, instances = {};  ///< empty: all
  std::string sort = {};  ///< empty: in the order of the catalogs
};

/// The rows of `catalog --format json`, one for each instance at one of its prices, and one for an instance without a
/// price. Each has "owned" besides, true for a price that stands for machines of one's own. `today` is YYYY-MM-DD.
/// Throws ConfigError, with the known names, for a name that is not in the catalogs.
OrderedJson selected_offers(const std::vector<Platform>& platforms, const OfferChoice& choice,
                            const std::string& today);

/// { "findings": rows of check_platform() with their "provider", "platforms": how many "instances" and "prices" each
/// provider has }.
OrderedJson findings_in(const std::vector<Platform>& platforms, const std::string& today);

}  // namespace ganymede::platforms
