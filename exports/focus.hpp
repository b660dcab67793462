#pragma once
// A bill as FOCUS 1.2 (FinOps Open Cost and Usage Specification): the table that cost tools read.

#include <cstdint>
#include <string>

#include "common/json_fwd.hpp"

namespace ganymede::exports {

struct FocusOptions {
  std::int64_t start = 0;            ///< when the run starts, in seconds since 1970-01-01T00:00:00Z
  std::string account = "estimate";  ///< BillingAccountId
};

/// Returns CSV with one row for each item of the bill and month, for a `ganymede.result/1` or for every run of a
/// `ganymede.sweep/1`: the 21 mandatory columns, those of commitments and those that tools group by. x_IsEstimate is
/// true in every row. BilledCost sums to the totals of the bills exactly. Hours that a commitment covers are billed by
/// rows of its purchase, and their EffectiveCost is in rows of their use (FOCUS 1.2, EffectiveCost,
/// CommitmentDiscountStatus and PricingCategory).
std::string focus_csv(const Json& result, const FocusOptions& options);

}  // namespace ganymede::exports
