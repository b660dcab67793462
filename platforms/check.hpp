#pragma once
// Finds entries of a catalog that somebody should check before it is used.

#include <string>
#include <vector>

#include "platforms/platform.hpp"

namespace ganymede::platforms {

/// Bounds for the price of one device in dollars an hour: a hundredth of the lowest price on any market, and ten times
/// the highest.
inline constexpr double kMinDevicePrice = 0.005, kMaxDevicePrice = 150;

struct Finding {
  std::string kind;   ///< "unconfirmed", "undated", "old price", "no price", "implausible", "deep discount", ...
  std::string where;  ///< "p2.xlarge us-east-1 spot"
  std::string what;
};

/// Findings in the order of the platform's lists; `today` is YYYY-MM-DD. It reports
///  - facts that are unconfirmed or whose source is not in the file's table;
///  - prices without a date, older than a year, in the future, or out of range for a device;
///  - spot prices above the on-demand price, and discounts beyond 75 %;
///  - reserved prices that are not below the on-demand price or have another date than it, and three-year prices above
///    the one-year price of the same date;
///  - GPUs whose data is out of the range of what has been sold;
///  - instances that are retired or have no price, and regions without carbon intensity.
std::vector<Finding> check_platform(const Platform& platform, const std::string& today);

}  // namespace ganymede::platforms
