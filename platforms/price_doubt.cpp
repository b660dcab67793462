#include "platforms/price_doubt.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "common/dates.hpp"

namespace ganymede::platforms {
namespace {

// Spot: 36 pairs of a region and a p3, p4 or p5 type have a price of AWS's Spot Advisor (SPOTADV, 2025-06-28) and a
// later one of SkyPilot's catalog (SKY-AWS, its lowest zone). Half of them moved by less than a factor of 1.56, nine in
// ten by less than 2.40, and 95 % by less than 2.81, up or down.
constexpr double kSpotMove = 2.81;
// List prices: the farthest move between EC2SHOP (2025-04-04) and KARP-AWS (2026-07-20) in us-east-1 is that of
// p5.48xlarge, from 98.32 to 55.04 USD/h; p4d.24xlarge went from 32.77 to 21.96, and the prices of the p3 types did not
// change.
constexpr double kListMove = 98.32 / 55.04;

double dollars(MicroUsdPerHour price) { return static_cast<double>(price.value) * 1e-6; }
double dollars(const Price& price) { return dollars(price.per_hour); }

const Price* list_price(const Instance& instance, const Price& price) {
  return price.market == Market::on_demand ? nullptr
                                           : find_price(instance, price.region, Market::on_demand, price.zone);
}

enum class Age { fine, undated, to_come, old };

struct AgeOfPrice {
  Age age = Age::fine;
  int days = 0;
};

AgeOfPrice age_of(const Price& price, const PriceAge& age) {
  if (price.as_of == "undated") return {Age::undated, 0};
  if (age.today.empty()) return {};
  const int days = days_between(price.as_of, age.today);
  // Somewhere on Earth it is already tomorrow.
  return {days < -1 ? Age::to_come : days > age.most_days ? Age::old : Age::fine, days};
}

std::string old_age(const Price& price, const PriceAge& age) {
  const AgeOfPrice found = age_of(price, age);
  switch (found.age) {
    case Age::fine:
      return "";
    case Age::undated:
      return "undated";
    case Age::to_come:
      return fmt::format("of {}, after {}", price.as_of, age.today);
    case Age::old:
      return fmt::format("of {}, {} days old", price.as_of, found.days);
  }
  return "";
}

/// Whether the price, of which `list` is on demand, is less than a discount of kMaxDiscount leaves.
bool is_implausible(const Price* list, const Price& price) {
  return list != nullptr && list->per_hour.value != 0 && 1 - dollars(price) / dollars(*list) > kMaxDiscount;
}

}  // namespace

std::string implausible_discount(const Instance& instance, const Price& price) {
  const Price* list = list_price(instance, price);
  if (!is_implausible(list, price)) return "";
  return fmt::format("{:.0f} % below {} USD/h on demand", 100 * (1 - dollars(price) / dollars(*list)),
                     decimal(list->per_hour));
}

PriceRange price_range(const Instance& instance, const Price& price, const PriceAge& age) {
  if (price.per_hour.value == 0) return {};
  const Price* list = list_price(instance, price);
  const bool deep = is_implausible(list, price), moves = deep || age_of(price, age).age != Age::fine;
  PriceRange range;
  if (!moves && !price.spread) return range;
  if (moves) range.high = price.market == Market::spot ? kSpotMove : kListMove, range.low = 1 / range.high;
  if (list != nullptr) {
    const double most = dollars(*list) / dollars(price);
    if (deep) range.high = std::max(range.high, (1 - kMaxDiscount) * most);
    range.high = std::max(1.0, std::min(range.high, most));
  }
  if (price.spread) {
    range.low *= dollars(price.spread->first) / dollars(price);
    range.high *= dollars(price.spread->second) / dollars(price);
  }
  return range;
}

PriceDoubt price_doubt(const Instance& instance, const Price& price, const PriceAge& age) {
  if (price.per_hour.value == 0) return {};
  PriceDoubt doubt{price_range(instance, price, age), old_age(price, age)};
  const auto add = [&](const std::string& why) { doubt.why += (doubt.any() && !why.empty() ? ", " : "") + why; };
  add(implausible_discount(instance, price));
  if (price.spread) add(price.origin.unconfirmed.empty() ? "hosts differ" : price.origin.unconfirmed);
  return doubt;
}

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
