#pragma once
// How far a price can be trusted, judged by its age and by whether its discount is plausible.

#include <optional>
#include <string>

#include "platforms/platform.hpp"

namespace ganymede::platforms {

/// When a price counts as old.
struct PriceAge {
  std::string today;    ///< the date to which ages are counted, YYYY-MM-DD; empty: no dated price is old
  int most_days = 365;  ///< a price is old if its age in days is above this
};

/// The price that will be paid lies between `low` and `high` times the stated one. Both are 1 if there is no doubt.
struct PriceRange {
  double low = 1, high = 1;
};

struct PriceDoubt : PriceRange {
  std::string why;  ///< "undated", "of 2025-06-28, 387 days old", …; empty: no doubt

  bool any() const { return !why.empty(); }
};

/// How doubtful a price is. A marketplace's spreads as its offers do. It is doubtful too if it is undated, older than
/// `age` allows or has an implausible discount. It may then have moved as far as prices of these catalogs did between
/// two dates (price_doubt.cpp has the figures and their source). If the discount is implausible, it may also be as high
/// as a discount of kMaxDiscount leaves. No price is assumed to rise above the on-demand price of its region.
PriceDoubt price_doubt(const Instance& instance, const Price& price, const PriceAge& age);
/// The same without words, for the many prices that a search compares.
PriceRange price_range(const Instance& instance, const Price& price, const PriceAge& age);

/// Larger discounts, as a share of the region's on-demand price, are implausible until somebody has checked them.
inline constexpr double kMaxDiscount = 0.75;

/// "89 % below 24.48 USD/h on demand" if the discount is beyond kMaxDiscount; else empty.
std::string implausible_discount(const Instance& instance, const Price& price);

/// How far a price that is believed may have risen since its date.
struct PriceDrift {
  int days = 0;     ///< age of the price
  double high = 1;  ///< it may be so many times as high
};

/// From this age on, plans say what they cost if prices have drifted.
inline constexpr int kFreshDays = 30;

/// The drift of a price that is older than kFreshDays on the day `today` (YYYY-MM-DD, or empty: nothing). Nothing for a
/// price without a date, a price of 0, and a machine of one's own. List prices move like a random
/// walk, as far in t days as 1.21^sqrt(t / 45); spot prices by 2.81 at any age, and not above the list price.
/// price_doubt.cpp has the price histories.
std::optional<PriceDrift> price_drift(const Instance& instance, const Price& price, const std::string& today);

}  // namespace ganymede::platforms
