#pragma once
// How bills (documents/bill.hpp) are made: metered times, rounded as providers round them, and tiers of prices.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/units.hpp"
#include "documents/bill.hpp"
#include "platforms/billing.hpp"

namespace ganymede::sim {

using documents::Bill;
using documents::BillItem;

/// A metered time is the sum of very many steps, whose lengths are doubles. Time that exceeds a provider's unit by no
/// more than this is rounding noise of that sum, and does not begin another unit.
inline constexpr std::int64_t kNoiseNanoseconds = 1000;

/// How a provider meters: the time is rounded up to a multiple of `granularity` (above zero), and is at least
/// `minimum`.
struct BillingRule {
  Seconds granularity{1};
  Seconds minimum{60};
  /// A rental that the provider ends within this time is not charged; 0: all are.
  Seconds free_if_interrupted{0};
  /// Shares of the list price for equal parts of a month of 730 h, for example 1, 0.8, 0.6, 0.4 for its quarters. Hours
  /// of rentals that do not overlap count as those of one instance. Empty: the list price.
  std::vector<double> sustained_use = {};
};

/// One instance on the meter, in nanoseconds since the run's request. Precondition: from <= to.
struct Rental {
  std::int64_t from = 0, to = 0;
  bool interrupted = false;  ///< the provider ended it

  /// Returns the time until which it is billed: its end or later; its start if it is not charged.
  std::int64_t billed_until(const BillingRule& rule) const;
};

/// Returns the nanoseconds billed for `metered` nanoseconds: at least the minimum, rounded up to the granularity,
/// except that an excess of up to kNoiseNanoseconds over a unit is ignored. Throws Failure if the result does not fit
/// into 64 bits.
std::int64_t billed_time(std::int64_t metered, const BillingRule& rule);

/// Returns the items for instances of one type at one price: one item, or one for each share of the list price under
/// sustained use; none if nothing is charged. Throws Failure if an amount does not fit into 64 bits.
std::vector<BillItem> instance_hours(const std::string& pool, MicroUsdPerHour price, std::span<const Rental> rentals,
                                     const BillingRule& rule);

/// Adds to `quantities`, one for each tier, the `volume` units of a month that follow its first `before` units.
void fill_tiers(double before, double volume, std::span<const platforms::PriceTier> tiers,
                std::vector<double>& quantities);

/// Returns the items for the quantity of each tier, one for each tier that is reached.
std::vector<BillItem> tiered(const std::string& item, const std::string& pool, std::span<const double> quantities,
                             platforms::VolumeUnit unit, std::span<const platforms::PriceTier> tiers);

/// Returns the item for `quantity` units at `unit_price` each, rounded to the nearest micro-dollar. Throws Failure if
/// the amount does not fit into 64 bits.
BillItem charge(std::string item, std::string pool, double quantity, std::string unit, MicroUsd unit_price);

}  // namespace ganymede::sim
