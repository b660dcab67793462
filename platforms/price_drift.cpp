#include "platforms/price_drift.hpp"

#include <algorithm>
#include <cmath>

#include "common/dates.hpp"
#include "platforms/price_doubt.hpp"

namespace ganymede::platforms {
namespace {

// List prices at two dates, up to 45 days apart: 12 of RunPod (ten from 2026-09-25 to 2026-11-09, two to 2026-10-07;
// silybench-data derived/csv/gpu_prices.csv, data-receipts 109-gpu-pricing/vendors.json and runpod-plans-pricing.yml of
// api-evangelist) and five of Nebius (from September to 2026-10-07; nebius-plans-pricing.yml). Seven rose, by 13 to
// 21 %, and none fell. As a random walk this makes 1.85 of the 472 days in which p5.48xlarge went from 98.32 to 55.04
// USD/h, the farthest of AWS's prices.
constexpr double kListDrift = 9.5 / 7.85, kListDays = 45;

}  // namespace

std::optional<PriceDrift> price_drift(const Instance& instance, const Price& price, const std::string& today) {
  if (price.as_of == "undated" || today.empty() || price.per_hour.value == 0 || price.ownership) return std::nullopt;
  const int days = days_between(price.as_of, today);
  if (days <= kFreshDays) return std::nullopt;
  if (price.market != Market::spot) return PriceDrift{days, std::pow(kListDrift, std::sqrt(days / kListDays))};
  // What a spot price without a date may have moved by, which ends at the list price.
  Price undated = price;
  undated.as_of = "undated";
  return PriceDrift{days, price_doubt(instance, undated, {}).high};
}

}  // namespace ganymede::platforms
