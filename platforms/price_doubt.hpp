#pragma once
// How far a price may be believed: its age, and whether its discount is plausible.

#include <string>

#include "platforms/platform.hpp"

namespace ganymede {

/// What makes a price old.
struct PriceAge {
  std::string today;    ///< YYYY-MM-DD that ages count to; empty: no dated price is old
  int most_days = 365;  ///< older ones are old
};

/// The price that will be paid lies between `low` and `high` times the stated one. Both are 1 where nothing speaks
/// against the price.
struct PriceDoubt {
  double low = 1, high = 1;
  std::string why;  ///< "undated", "of 2025-06-28, 387 days old", …; empty: no doubt

  bool any() const { return !why.empty(); }
};

/// A price without a date or older than `age` allows may have moved as far as prices of these catalogs did between two
/// dates (price_doubt.cpp has the figures and their source). A discount beyond kMostDiscount is doubted too: the price
/// may then be as high as that discount leaves. A price of another market than on demand is never taken to rise above
/// the on-demand price of its region.
PriceDoubt price_doubt(const Instance& instance, const Price& price, const PriceAge& age);

/// The discount, as a share of the on-demand price of its region, beyond which a price is not plausible without a look.
inline constexpr double kMostDiscount = 0.75;

/// "89 % below 24.48 USD/h on demand" where the discount is beyond kMostDiscount; else empty.
std::string implausible_discount(const Instance& instance, const Price& price);

/// The newest date that a price of the platform has; empty: none has one.
std::string newest_price_date(const Platform& platform);

}  // namespace ganymede
