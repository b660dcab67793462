#pragma once
// How far a price that is believed may have risen since its date.

#include <optional>
#include <string>

#include "platforms/platform.hpp"

namespace ganymede::platforms {

struct PriceDrift {
  int days = 0;     ///< age of the price
  double high = 1;  ///< it may be so many times as high
};

/// From this age on, plans say what they cost if prices have drifted.
inline constexpr int kFreshDays = 30;

/// The drift of a price that is older than kFreshDays on the day `today` (YYYY-MM-DD, or empty: nothing). Nothing for a
/// price without a date (price_doubt.hpp), a price of 0, and a machine of one's own. List prices move like a random
/// walk, as far in t days as 1.21^sqrt(t / 45); spot prices by 2.81 at any age, and not above the list price.
/// price_drift.cpp has the price histories.
std::optional<PriceDrift> price_drift(const Instance& instance, const Price& price, const std::string& today);

}  // namespace ganymede::platforms
