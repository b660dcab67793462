#include "platforms/price_doubt.hpp"

#include <fmt/format.h>

#include <algorithm>

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

std::string old_age(const Price& price, const PriceAge& age) {
  if (price.as_of == "undated") return "undated";
  if (age.today.empty()) return "";
  const int days = days_between(price.as_of, age.today);
  // Somewhere on Earth it is already tomorrow.
  if (days < -1) return fmt::format("of {}, after {}", price.as_of, age.today);
  return days > age.most_days ? fmt::format("of {}, {} days old", price.as_of, days) : "";
}

}  // namespace

std::string implausible_discount(const Instance& instance, const Price& price) {
  const Price* list = list_price(instance, price);
  if (list == nullptr || list->per_hour.value == 0) return "";
  const double discount = 1 - dollars(price) / dollars(*list);
  return discount > kMaxDiscount
             ? fmt::format("{:.0f} % below {} USD/h on demand", 100 * discount, decimal(list->per_hour))
             : "";
}

PriceDoubt price_doubt(const Instance& instance, const Price& price, const PriceAge& age) {
  const std::string old = old_age(price, age);
  const std::string deep = implausible_discount(instance, price);
  if (price.per_hour.value == 0 || (old.empty() && deep.empty() && !price.spread)) return {};
  PriceDoubt doubt{1, 1, old + (old.empty() || deep.empty() ? "" : ", ") + deep};
  if (doubt.any()) {
    doubt.high = price.market == Market::spot ? kSpotMove : kListMove;
    doubt.low = 1 / doubt.high;
  }
  if (const Price* list = list_price(instance, price)) {
    const double most = dollars(*list) / dollars(price);
    if (!deep.empty()) doubt.high = std::max(doubt.high, (1 - kMaxDiscount) * most);
    doubt.high = std::max(1.0, std::min(doubt.high, most));
  }
  if (price.spread) {
    doubt.low *= dollars(price.spread->first) / dollars(price);
    doubt.high *= dollars(price.spread->second) / dollars(price);
    doubt.why +=
        (doubt.any() ? ", " : "") + (price.origin.unconfirmed.empty() ? "hosts differ" : price.origin.unconfirmed);
  }
  return doubt;
}

}  // namespace ganymede::platforms
