#pragma once
// Amounts of money as numbers. Results write each amount twice: as decimal() (units.hpp), which is exact and which sums
// are made of, and as a number in dollars, for programs that only plot and compare.

#include "common/units.hpp"

namespace ganymede {

/// The number that is nearest to the exact amount: its shortest text is that of decimal() without final zeros.
inline double usd_of(MicroUsd amount) { return static_cast<double>(amount.value) / 1e6; }
/// The same for a price, in dollars per hour.
inline double usd_of(MicroUsdPerHour price) { return static_cast<double>(price.value) / 1e6; }

}  // namespace ganymede
