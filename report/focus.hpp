#pragma once
// A bill as FOCUS 1.2 (FinOps Open Cost and Usage Specification): the table that cost tools read.

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace ganymede {

struct FocusOptions {
  std::int64_t start = 0;  ///< of the run: seconds since 1970-01-01T00:00:00Z
  std::string account = "estimate";
};

/// A row an item of the bill of a `ganymede.result/1`, or of each run of a `ganymede.sweep/1`: the 21 mandatory columns
/// and those that tools group by, every row with x_IsEstimate true. Amounts sum to the bills' totals exactly.
std::string focus_csv(const nlohmann::json& result, const FocusOptions& options);

}  // namespace ganymede
