#pragma once
// Finds what in a catalog should be checked before it is used.

#include <string>
#include <vector>

#include "platforms/platform.hpp"

namespace ganymede::platforms {

struct Finding {
  std::string
      kind;  ///< "unconfirmed", "undated", "old price", "no price", "retired", "implausible", "deep discount", ...
  std::string where;  ///< "p2.xlarge us-east-1 spot"
  std::string what;
};

/// Findings in the order of the platform's lists; `today` is YYYY-MM-DD. It reports
///  - facts that are unconfirmed or whose source is not in the file's table;
///  - prices without a date, older than a year, in the future, or out of range for a device;
///  - spot prices above on demand, discounts beyond 75 %;
///  - reserved prices that are not below on demand of the same date, or cannot be compared because the dates differ,
///  and
///    three years dearer than one;
///  - GPUs whose data is out of the range of what has been sold;
///  - instances that are retired or have no price, and regions without carbon intensity.
std::vector<Finding> check_platform(const Platform& platform, const std::string& today);

}  // namespace ganymede::platforms
