#pragma once
// What in a catalog should be looked at before it is believed.

#include <string>
#include <vector>

#include "platforms/platform.hpp"

namespace ganymede {

struct Finding {
  std::string
      kind;  ///< "unconfirmed", "undated", "old price", "no price", "retired", "implausible", "deep discount", ...
  std::string where;  ///< "p2.xlarge us-east-1 spot"
  std::string what;
};

/// In the order of the platform's lists. `today` as YYYY-MM-DD.
///
/// Flagged: facts without a source of the file's table, or unconfirmed; prices without a date, older than a year, in
/// the future or absurd for what they rent; spot above on-demand; reserved not below on-demand of the same date, or of
/// another date, which does not compare; discounts beyond 75 %; three years dearer than one; GPUs outside what has been
/// sold; instances retired or without a price; regions without carbon intensity.
std::vector<Finding> check_platform(const Platform& platform, const std::string& today);

}  // namespace ganymede
