#pragma once
// How far a price may be trusted: by its age, and by whether its discount is plausible.

#include <string>

#include "platforms/platform.hpp"

namespace ganymede::platforms {

/// When a price counts as old.
struct PriceAge {
  std::string today;    ///< YYYY-MM-DD, to which ages count; empty: no dated price is old
  int most_days = 365;  ///< older prices are old
};

/// The price that will be paid lies between `low` and `high` times the stated one. Both are 1 if there is no doubt.
struct PriceDoubt {
  double low = 1, high = 1;
  std::string why;  ///< "undated", "of 2025-06-28, 387 days old", …; empty: no doubt

  bool any() const { return !why.empty(); }
};

/// Doubt about a price. One that is undated or older than `age` allows may have moved as far as prices of these
/// catalogs did between two dates (price_doubt.cpp has the figures and their source). If the discount is beyond
/// kMaxDiscount, the price may be as high as that discount leaves. No price is taken to rise above the on-demand price
/// of its region.
PriceDoubt price_doubt(const Instance& instance, const Price& price, const PriceAge& age);

/// Discounts beyond this share of the on-demand price of the region are not plausible unchecked.
inline constexpr double kMaxDiscount = 0.75;

/// "89 % below 24.48 USD/h on demand" if the discount is beyond kMaxDiscount; else empty.
std::string implausible_discount(const Instance& instance, const Price& price);

/// The newest date of the platform's prices; empty if none has a date.
std::string newest_price_date(const Platform& platform);

}  // namespace ganymede::platforms
