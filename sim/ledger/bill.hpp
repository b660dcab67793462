#pragma once
// What a run costs: items in integer micro-dollars whose sum is the total, exactly.

#include <string>
#include <vector>

#include "common/units.hpp"

namespace ganymede {

/// One line of a bill. `usd` is the amount charged: `quantity` is its explanation, and in a double may be rounded.
struct BillItem {
  std::string item;  ///< "instance-hours"
  std::string pool;  ///< whose: "p3.8xlarge us-east-1 on-demand"
  double quantity = 0;
  std::string unit;     ///< of the quantity: "h"
  MicroUsd unit_price;  ///< for one unit
  MicroUsd usd;
  bool operator==(const BillItem&) const = default;
};

struct Bill {
  std::vector<BillItem> items;

  MicroUsd total() const;  ///< Failure when the sum does not fit
};

/// How a provider meters: the time is rounded up to `granularity` (above zero), and is at least `minimum`.
struct BillingRule {
  Seconds granularity{1};
  Seconds minimum{60};
};

/// The time that is billed for `metered`, taken in whole nanoseconds: at least the minimum, rounded up.
Seconds billed_time(Seconds metered, const BillingRule& rule);

/// `nodes` instances (at least one), all rented for `metered` and each billed at `price`. Failure when the amount does
/// not fit.
BillItem instance_hours(std::string pool, std::int64_t nodes, MicroUsdPerHour price, Seconds metered,
                        const BillingRule& rule);

}  // namespace ganymede
