#pragma once
// What a run costs: items in integer micro-dollars whose sum is the total, exactly.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/units.hpp"
#include "platforms/billing.hpp"

namespace ganymede {

/// One line of a bill. `usd` is the amount charged: `quantity` is its explanation, and in a double may be rounded.
struct BillItem {
  std::string item;  ///< "instance-hours"
  std::string pool;  ///< whose: "p3.8xlarge us-east-1 on-demand"
  double quantity = 0;
  std::string unit;     ///< of the quantity: "h"
  MicroUsd unit_price;  ///< for one unit
  MicroUsd usd;
  std::string provider = {}, region = {}, market = {};  ///< where they apply
  MicroUsd list_price = {};                             ///< for one unit, before discounts; 0: `unit_price`
  bool operator==(const BillItem&) const = default;
};

struct Bill {
  std::vector<BillItem> items;

  MicroUsd total() const;  ///< Failure when the sum does not fit
};

/// A metered time is the sum of very many steps, whose lengths are doubles: what lies this little over a provider's
/// unit of time is taken for the noise of that sum, and does not begin another unit.
inline constexpr std::int64_t kNoiseNanoseconds = 1000;

/// How a provider meters: the time is rounded up to `granularity` (above zero), and is at least `minimum`.
struct BillingRule {
  Seconds granularity{1};
  Seconds minimum{60};
  /// What the provider takes back within so long is not charged; 0: all is.
  Seconds free_if_interrupted{0};
  /// Prices of equal parts of a month of 730 h as shares of the list price, of what is used at once: hours of several
  /// rentals that do not overlap count as those of one. Empty: the list price.
  std::vector<double> sustained_use = {};
};

/// One instance on the meter, in nanoseconds since the run's start; from <= to.
struct Rental {
  std::int64_t from = 0, to = 0;
  bool interrupted = false;  ///< it was the provider who ended it

  /// Until when it is billed: its own end or later; its start where it is not charged at all.
  std::int64_t billed_until(const BillingRule& rule) const;
};

/// The nanoseconds that are billed for those metered: at least the minimum, rounded up but for `kNoiseNanoseconds`.
std::int64_t billed_time(std::int64_t metered, const BillingRule& rule);

/// Instances of one type at one price: an item, or one for each share of the list price that sustained use brings.
/// None where nothing is charged. Failure when an amount does not fit.
std::vector<BillItem> instance_hours(const std::string& pool, MicroUsdPerHour price, std::span<const Rental> rentals,
                                     const BillingRule& rule);

/// Volume at tiered prices, from the month's first unit on: "data transfer" in GB or GiB.
/// An item for each tier that is reached.
std::vector<BillItem> tiered(const std::string& item, const std::string& pool, double bytes, VolumeUnit unit,
                             std::span<const PriceTier> tiers);

/// `quantity` units at a price each, to the nearest micro-dollar. Failure when the amount does not fit.
BillItem charge(std::string item, std::string pool, double quantity, std::string unit, MicroUsd unit_price);

}  // namespace ganymede
