#include "platforms/price_doubt.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "common/units.hpp"
#include "platforms/catalog.hpp"
#include "platforms/check.hpp"

namespace ganymede::platforms {
namespace {

using testing::HasSubstr;

Instance rented_at(std::vector<Price> prices) {
  Instance instance;
  instance.name = "node";
  instance.gpus = 1;
  instance.prices = std::move(prices);
  return instance;
}

Price price_of(Market market, double usd, const std::string& as_of) {
  Price price;
  price.region = "r";
  price.market = market;
  price.per_hour = MicroUsdPerHour{static_cast<std::int64_t>(usd * 1e6)};
  price.as_of = as_of;
  return price;
}

constexpr double kListMove = 98.32 / 55.04;  // p5.48xlarge, the farthest that a list price of the catalog has moved
constexpr double kSpotMove = 2.81;           // what 95 % of 36 spot prices of the catalog moved by less than

TEST(PriceDoubt, ADatedPriceIsBelievedForAYear) {
  const Instance node = rented_at({price_of(Market::on_demand, 4, "2026-01-01")});
  EXPECT_FALSE(price_doubt(node, node.prices[0], {"2027-01-01", 365}).any());  // 365 days
  EXPECT_EQ(price_doubt(node, node.prices[0], {"2027-01-01", 365}).high, 1);
  EXPECT_FALSE(price_doubt(node, node.prices[0], {"2025-12-31", 365}).any());
  EXPECT_EQ(price_doubt(node, node.prices[0], {"2025-12-30", 365}).why, "of 2026-01-01, after 2025-12-30");
  const PriceDoubt old = price_doubt(node, node.prices[0], {"2027-01-02", 365});
  EXPECT_EQ(old.why, "of 2026-01-01, 366 days old");
  EXPECT_DOUBLE_EQ(old.high, kListMove);
  EXPECT_DOUBLE_EQ(old.low, 1 / kListMove);
  EXPECT_TRUE(price_doubt(node, node.prices[0], {"2026-02-01", 30}).any());  // 31 days
  EXPECT_FALSE(price_doubt(node, node.prices[0], {"", 365}).any());
}

TEST(PriceDoubt, APriceWithoutADateMayHaveMoved) {
  const Instance node = rented_at({price_of(Market::on_demand, 4, "undated"), price_of(Market::spot, 2, "undated")});
  EXPECT_DOUBLE_EQ(price_doubt(node, node.prices[0], {}).high, kListMove);
  // Spot: 2 x 2.81 is above the 4 USD/h on demand, which spot never exceeds: twice the price at most.
  EXPECT_DOUBLE_EQ(price_doubt(node, node.prices[1], {}).high, 2);
  EXPECT_DOUBLE_EQ(price_doubt(node, node.prices[1], {}).low, 1 / kSpotMove);
}

// A marketplace's price lies between its offers' ends, and may have moved besides.
TEST(PriceDoubt, AMarketplaceSpreads) {
  Instance node = rented_at({price_of(Market::on_demand, 4, "2026-01-01")});
  node.prices[0].spread = {MicroUsdPerHour{2'000'000}, MicroUsdPerHour{10'000'000}};
  const PriceDoubt fresh = price_doubt(node, node.prices[0], {"2026-02-01", 365});
  EXPECT_EQ(fresh.why, "hosts differ");
  EXPECT_DOUBLE_EQ(fresh.low, 0.5);
  EXPECT_DOUBLE_EQ(fresh.high, 2.5);
  node.prices[0].as_of = "undated";
  node.prices[0].origin.unconfirmed = "median of 9 offers";
  const PriceDoubt old = price_doubt(node, node.prices[0], {});
  EXPECT_EQ(old.why, "undated, median of 9 offers");
  EXPECT_DOUBLE_EQ(old.low, 0.5 / kListMove);
  EXPECT_DOUBLE_EQ(old.high, 2.5 * kListMove);
}

TEST(PriceDoubt, ADiscountBeyondThreeQuartersIsDoubted) {
  const Instance node = rented_at({price_of(Market::on_demand, 10, "2026-01-01"),
                                   price_of(Market::spot, 2.5, "2026-01-01"),    // 75 %: plausible
                                   price_of(Market::spot, 2.4, "2026-01-01"),    // 76 %
                                   price_of(Market::spot, 0.5, "2026-01-01")});  // 95 %: a quarter is 2.5, five times
  EXPECT_FALSE(price_doubt(node, node.prices[1], {"2026-01-02"}).any());
  EXPECT_EQ(implausible_discount(node, node.prices[1]), "");
  EXPECT_DOUBLE_EQ(price_doubt(node, node.prices[2], {"2026-01-02"}).high, kSpotMove);
  EXPECT_EQ(price_doubt(node, node.prices[2], {"2026-01-02"}).why, "76 % below 10.00 USD/h on demand");
  EXPECT_DOUBLE_EQ(price_doubt(node, node.prices[3], {"2026-01-02"}).high, 5);
}

// What costs nothing, beside anything or by itself, is no discount; and no price rises above the list price.
TEST(PriceDoubt, FreeMachinesAndDearSpotAreNotDoubtedUpwards) {
  const Instance free = rented_at({price_of(Market::on_demand, 0, "undated"), price_of(Market::spot, 1, "2026-01-01")});
  EXPECT_FALSE(price_doubt(free, free.prices[0], {}).any());
  EXPECT_EQ(implausible_discount(free, free.prices[1]), "");
  const Instance dear = rented_at({price_of(Market::on_demand, 2, "2026-01-01"), price_of(Market::spot, 3, "undated")});
  EXPECT_DOUBLE_EQ(price_doubt(dear, dear.prices[1], {}).high, 1);
  EXPECT_EQ(price_doubt(dear, dear.prices[1], {}).why, "undated");
  // Both reasons are said: 95 % below, and old.
  const Instance both =
      rented_at({price_of(Market::on_demand, 10, "2026-01-01"), price_of(Market::spot, 0.5, "undated")});
  EXPECT_EQ(price_doubt(both, both.prices[1], {}).why, "undated, 95 % below 10.00 USD/h on demand");
  // Reserved: list prices move by less than spot's. 4 x 98.32 / 55.04 is below the 8 USD/h on demand.
  const Instance kept =
      rented_at({price_of(Market::on_demand, 8, "2026-01-01"), price_of(Market::reserved_1y, 4, "undated")});
  EXPECT_DOUBLE_EQ(price_doubt(kept, kept.prices[1], {}).high, kListMove);
  EXPECT_DOUBLE_EQ(price_doubt(kept, kept.prices[1], {}).low, 1 / kListMove);
}

// Nebius asked 7.85 USD for a B300 in September 2026 and 9.50 USD in October: 1.21 times as much, 45 days apart.
TEST(PriceDrift, GrowsWithTheAgeOfABelievedPrice) {
  const Instance node =
      rented_at({price_of(Market::on_demand, 4, "2026-01-01"), price_of(Market::spot, 1, "2026-01-01"),
                 price_of(Market::spot, 2, "2026-01-01"), price_of(Market::on_demand, 4, "undated"),
                 price_of(Market::on_demand, 0, "2026-01-01")});
  EXPECT_FALSE(price_drift(node, node.prices[0], "2026-01-31"));  // 30 days
  EXPECT_FALSE(price_drift(node, node.prices[0], ""));
  EXPECT_FALSE(price_drift(node, node.prices[3], "2027-01-01"));
  EXPECT_FALSE(price_drift(node, node.prices[4], "2027-01-01"));
  EXPECT_EQ(price_drift(node, node.prices[0], "2026-02-01")->days, 31);
  EXPECT_NEAR(price_drift(node, node.prices[0], "2026-02-15")->high, 1.2102, 1e-4);           // 45 days
  EXPECT_NEAR(price_drift(node, node.prices[0], "2026-06-30")->high, 1.2102 * 1.2102, 1e-3);  // four times as many
  EXPECT_EQ(price_drift(node, node.prices[1], "2026-02-15")->high, kSpotMove);
  EXPECT_EQ(price_drift(node, node.prices[2], "2026-02-15")->high, 2);  // not above the list price
}

TEST(PriceDoubt, TheCheckListsDeepDiscounts) {
  const auto findings = check_platform(catalog("aws"), "2026-11-20");
  // 2.6694 of 24.48 USD/h is 10.9 %.
  EXPECT_TRUE(std::any_of(findings.begin(), findings.end(), [](const Finding& finding) {
    return finding.kind == "deep discount" && finding.where == "p3.16xlarge us-east-1 spot" &&
           finding.what.starts_with("89 % below 24.48 USD/h on demand");
  }));
  EXPECT_TRUE(std::none_of(findings.begin(), findings.end(), [](const Finding& finding) {
    return finding.kind == "deep discount" &&
           finding.where == "p4d.24xlarge us-east-2 spot";  // 6.0374 of 21.9576: 73 %
  }));
}

struct SpotOfOhio {
  const char *instance, *zone;
  double usd;
};

// SKY-AWS of region us-east-2, as it was handed over: each zone's price, and the region's is the lowest.
TEST(Catalog, HasTheSpotPricesOfUsEast2) {
  constexpr SpotOfOhio kRows[] = {
      {"p3.2xlarge", "use2-az1", 0.5901},   {"p3.2xlarge", "use2-az2", 0.7522},   {"p3.8xlarge", "use2-az1", 1.3235},
      {"p3.8xlarge", "use2-az2", 1.2635},   {"p3.16xlarge", "use2-az1", 2.448},   {"p3.16xlarge", "use2-az2", 2.7281},
      {"p4d.24xlarge", "use2-az1", 6.0374}, {"p4d.24xlarge", "use2-az2", 6.0965}, {"p4d.24xlarge", "use2-az3", 21.8535},
      {"p5.48xlarge", "use2-az1", 11.2543}, {"p5.48xlarge", "use2-az2", 11.5616}, {"p5.48xlarge", "use2-az3", 11.9912}};
  const Platform& aws = catalog("aws");
  std::map<std::string, double> lowest;
  for (const SpotOfOhio& row : kRows) {
    const Price& price = aws.price(aws.instance(row.instance), "us-east-2", Market::spot, nullptr, nullptr, row.zone);
    EXPECT_EQ(price.zone, row.zone);
    EXPECT_NEAR(static_cast<double>(price.per_hour.value), row.usd * 1e6, 0.5) << row.instance;
    EXPECT_EQ(price.as_of, "undated");
    EXPECT_TRUE(price.origin.source.starts_with("SKY-AWS"));
    const auto [at, fresh] = lowest.emplace(row.instance, row.usd);
    if (!fresh) at->second = std::min(at->second, row.usd);
  }
  for (const auto& [instance, usd] : lowest) {
    const Price* of_region = find_price(aws.instance(instance), "us-east-2", Market::spot);
    ASSERT_NE(of_region, nullptr);
    EXPECT_NEAR(static_cast<double>(of_region->per_hour.value), usd * 1e6, 0.5) << instance;
    EXPECT_NE(find_price(aws.instance(instance), "us-east-2", Market::on_demand), nullptr);
  }
  ASSERT_NE(aws.region("us-east-2"), nullptr);
}

}  // namespace
}  // namespace ganymede::platforms
