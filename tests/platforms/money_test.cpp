// What a platform file says about money: every key with a value of its own, the limits of each, and amounts as texts.

#include "platforms/money.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "common/errors.hpp"
#include "common/json.hpp"
#include "common/json_value.hpp"
#include "common/units.hpp"
#include "platforms/platform.hpp"
#include "support/errors.hpp"

namespace ganymede::platforms {
namespace {

using namespace literals;
using testing::AllOf;
using testing::HasSubstr;

const std::string kPriced = R"({ "schema": "ganymede.platform/1",
  "gpus": { "G": { "memory": "16GiB", "fp32": "10Tflop/s", "memory_bandwidth": "900GB/s" } },
  "instances": { "node": { "gpu": "G", "gpus": 1, "prices": [
    { "region": "r", "market": "on-demand", "per_hour": "4USD/h", "as_of": "2026-01-01", "source": "LIST" },
    { "region": "r", "zone": "z", "market": "spot", "per_hour": "1.25USD/h", "as_of": "undated",
      "interrupted_per_month": 0.25 },
    { "region": "s", "market": "on-demand", "as_of": "2026-02-01", "ownership": { "capital": "8766USD", "life_years": 2,
      "utilization": 0.5, "overcommit": 4, "staff": "0.40USD/h", "space_per_year": "87.66USD/year",
      "people_per_year": "876.60USD", "always_on": true } } ] } },
  "storage": {
    "disk": { "read": "200MB/s", "write": "100MB/s", "iops": 3000, "provisioned": true, "latency": "1ms",
      "burst_iops": 9000, "burst_credits": 5400000, "minimum": "1GiB", "maximum": "16384GiB", "each_node": true,
      "by_size": { "iops_per_gib": 3, "least_iops": 100, "throughput_per_gib": "250kB/s", "least_throughput": "128kB/s" },
      "limits": { "iops": 16000, "iops_per_gib": 500, "throughput": "1GB/s", "throughput_per_iops": "256kB/s" },
      "per_gib_month": "0.08USD", "per_iops_month": "0.005USD", "per_mibps_month": "0.04USD", "source": "DISK",
      "regions": { "far": { "per_gib_month": "0.10USD" }, "odd": { "per_gb_month": "0.09USD", "per_mbps_month": "0.03USD" } } },
    "bucket": { "kind": "object", "read": "1GB/s", "write": "1GB/s", "per_gb_month": "0.023USD",
      "per_1000_put": "0.005USD", "per_1000_get": "0.0004USD" } },
  "billing": { "granularity": "60s", "minimum": "300s", "starts": "ready", "free_if_interrupted_within": "3600s", "source": "BILL" },
  "transfer": { "zone": "0.01USD", "zone_charged": "once", "region": "0.02USD", "free_gb_month": 100, "source": "MOVE",
    "internet": [ { "up_to_gib": 1024, "per_gib": "0.12USD" }, { "per_gib": "0.08USD" } ] },
  "services": { "control_plane": "0.10USD/h", "control_plane_free": "2678400s", "load_balancer": "0.025USD/h",
    "source": "SERVE" } })";

/// The file with one value replaced; a null takes the key away.
Platform with(const char* pointer, const Json& value) {
  Json content = Json::parse(kPriced);
  const JsonPointer at(pointer);
  if (value.is_null())
    content.at(at.parent_pointer()).erase(at.back());
  else
    content[at] = value;
  return read_platform(JsonNode::wrap(std::move(content), "priced.json", ""));
}

Platform priced() { return read_platform(JsonNode::parse(kPriced, "priced.json")); }

TEST(PricedPlatform, HasTheInstancesPrices) {
  const Platform platform = priced();
  const Instance& node = platform.instance("node");
  ASSERT_EQ(node.prices.size(), 3u);
  const Price& list = node.prices[0];
  EXPECT_EQ(list.region, "r");
  EXPECT_EQ(list.zone, "");
  EXPECT_EQ(list.market, Market::on_demand);
  EXPECT_EQ(list.per_hour.value, 4'000'000);
  EXPECT_EQ(list.as_of, "2026-01-01");
  EXPECT_EQ(list.origin.source, "LIST");
  EXPECT_FALSE(list.ownership);
  EXPECT_FALSE(list.interrupted_per_month);
  const Price& spot = node.prices[1];
  EXPECT_EQ(spot.zone, "z");
  EXPECT_EQ(spot.market, Market::spot);
  EXPECT_EQ(spot.per_hour.value, 1'250'000);
  EXPECT_EQ(spot.interrupted_per_month, 0.25);
  // (8766 USD / 2 years + 87.66 + 876.60) / (8766 h x 0.5 x 4) + 0.40 / 4 = 0.5 x 0.5 + 0.005 + 0.05 + 0.1 = 0.405.
  const Price& owned = node.prices[2];
  EXPECT_EQ(owned.per_hour.value, 405'000);
  ASSERT_TRUE(owned.ownership);
  EXPECT_EQ(owned.ownership->capital.value, 8'766'000'000);
  EXPECT_EQ(owned.ownership->life_years, 2);
  EXPECT_EQ(owned.ownership->utilization, 0.5);
  EXPECT_EQ(owned.ownership->overcommit, 4);
  EXPECT_EQ(owned.ownership->staff.value, 400'000);
  EXPECT_EQ(owned.ownership->space_per_year.value, 87'660'000);
  EXPECT_EQ(owned.ownership->people_per_year.value, 876'600'000);
  EXPECT_TRUE(owned.ownership->always_on);
}

TEST(PricedPlatform, HasTheStoragesPricesAndSizes) {
  const Storage disk = priced().storage_class("disk");
  EXPECT_EQ(disk.name, "disk");
  EXPECT_FALSE(disk.object_store);
  EXPECT_EQ(disk.read.si, 200e6);
  EXPECT_EQ(disk.write.si, 100e6);
  EXPECT_EQ(disk.iops, 3000);
  EXPECT_TRUE(disk.provisioned);
  EXPECT_EQ(disk.latency, 1_ms);
  EXPECT_EQ(disk.burst_iops, 9000);
  EXPECT_EQ(disk.burst_credits, 5'400'000);
  EXPECT_EQ(disk.minimum, 1_GiB);
  EXPECT_EQ(disk.maximum, 16384_GiB);
  EXPECT_TRUE(disk.each_node);
  EXPECT_EQ(disk.by_size.iops_per_gib, 3);
  EXPECT_EQ(disk.by_size.least_iops, 100);
  EXPECT_EQ(disk.by_size.per_gib.si, 250e3);
  EXPECT_EQ(disk.by_size.least.si, 128e3);
  EXPECT_EQ(disk.limits.iops, 16000);
  EXPECT_EQ(disk.limits.iops_per_gib, 500);
  EXPECT_EQ(disk.limits.throughput, 1_GB_per_s);
  EXPECT_EQ(disk.limits.per_iops->si, 256e3);
  EXPECT_EQ(disk.origin.source, "DISK");
  EXPECT_EQ(disk.rates.per_month->value, 80'000);
  EXPECT_EQ(disk.rates.unit, VolumeUnit::gib);
  EXPECT_EQ(disk.rates.per_iops_month->value, 5'000);
  EXPECT_EQ(disk.rates.per_rate_month->value, 40'000);
  EXPECT_TRUE(disk.rates.rate_in_mib);
  EXPECT_FALSE(disk.rates.per_1000_put);
  // A region replaces what it states and keeps the rest.
  ASSERT_EQ(disk.regions.size(), 2u);
  EXPECT_EQ(disk.rates_in("far").per_month->value, 100'000);
  EXPECT_EQ(disk.rates_in("far").unit, VolumeUnit::gib);
  EXPECT_EQ(disk.rates_in("far").per_rate_month->value, 40'000);
  EXPECT_EQ(disk.rates_in("odd").per_month->value, 90'000);
  EXPECT_EQ(disk.rates_in("odd").unit, VolumeUnit::gb);
  EXPECT_EQ(disk.rates_in("odd").per_rate_month->value, 30'000);
  EXPECT_FALSE(disk.rates_in("odd").rate_in_mib);
  EXPECT_EQ(disk.rates_in("r").per_month->value, 80'000);

  const Storage bucket = priced().storage_class("bucket");
  EXPECT_TRUE(bucket.object_store);
  EXPECT_TRUE(bucket.each_node);  // as every object store
  EXPECT_FALSE(with("/storage/disk/each_node", nullptr).storage_class("disk").each_node);
  EXPECT_FALSE(with("/storage/bucket/each_node", false).storage_class("bucket").each_node);
  EXPECT_EQ(bucket.rates.per_1000_put->value, 5'000);
  EXPECT_EQ(bucket.rates.per_1000_get->value, 400);
  EXPECT_EQ(bucket.rates.unit, VolumeUnit::gb);
  EXPECT_FALSE(bucket.minimum);
  EXPECT_FALSE(bucket.iops);
  EXPECT_EQ(bucket.latency, 0_s);
}

TEST(PricedPlatform, SaysHowHoursTrafficAndServicesAreCharged) {
  const Platform platform = priced();
  EXPECT_EQ(platform.billing.granularity, 60_s);
  EXPECT_EQ(platform.billing.minimum, 300_s);
  EXPECT_EQ(platform.billing.start, Billing::Start::ready);
  EXPECT_EQ(platform.billing.free_if_interrupted, 3600_s);
  EXPECT_EQ(platform.billing.origin.source, "BILL");
  EXPECT_EQ(with("/billing/starts", "boot").billing.start, Billing::Start::boot);
  EXPECT_EQ(with("/billing/starts", "request").billing.start, Billing::Start::request);
  EXPECT_EQ(with("/billing", Json::object()).billing.start, Billing::Start::boot);
  EXPECT_EQ(with("/billing", Json::object()).billing.free_if_interrupted, 0_s);

  EXPECT_EQ(platform.transfer.zone->value, 10'000);
  EXPECT_FALSE(platform.transfer.zone_charged_at_both_ends);
  EXPECT_TRUE(with("/transfer/zone_charged", "both ends").transfer.zone_charged_at_both_ends);
  EXPECT_TRUE(with("/transfer/zone_charged", nullptr).transfer.zone_charged_at_both_ends);
  EXPECT_EQ(platform.transfer.region->value, 20'000);
  EXPECT_EQ(platform.transfer.free_gb_month, 100);
  EXPECT_EQ(platform.transfer.origin.source, "MOVE");
  ASSERT_EQ(platform.transfer.internet.size(), 2u);
  EXPECT_EQ(platform.transfer.internet[0].up_to, 1024);
  EXPECT_EQ(platform.transfer.internet[0].price.value, 120'000);
  EXPECT_EQ(platform.transfer.internet[1].up_to, std::nullopt);
  EXPECT_EQ(platform.transfer.internet[1].price.value, 80'000);
  EXPECT_EQ(platform.transfer.internet_unit, VolumeUnit::gib);
  EXPECT_EQ(with("/transfer/internet", {{{"per_gb", "0.09USD"}}}).transfer.internet_unit, VolumeUnit::gb);

  EXPECT_EQ(platform.services.control_plane->value, 100'000);
  EXPECT_EQ(platform.services.control_plane_free, 2678400_s);
  EXPECT_EQ(with("/services/control_plane_free", nullptr).services.control_plane_free, 0_s);
  EXPECT_EQ(platform.services.load_balancer->value, 25'000);
  EXPECT_EQ(platform.services.origin.source, "SERVE");
}

struct Limits {
  const char* pointer;
  std::vector<double> taken, refused;
};

// The ends of each range are taken, and what is just beyond them is refused.
TEST(PricedPlatform, TakesNumbersUpToTheirLimits) {
  const Limits limits[] = {
      {"/instances/node/prices/2/ownership/life_years", {1e-3, 1000}, {0.9e-3, 1001}},
      {"/instances/node/prices/2/ownership/utilization", {1e-3, 1}, {0.9e-3, 1.01}},
      {"/instances/node/prices/2/ownership/overcommit", {1, 1000}, {0.99, 1001}},
      {"/instances/node/prices/1/interrupted_per_month", {0, 0.999}, {-0.01, 1}},
      {"/storage/disk/iops", {1, 1e9}, {0.5, 1.1e9}},
      {"/storage/disk/burst_iops", {1, 1e9}, {0.5, 1.1e9}},
      {"/storage/disk/burst_credits", {0, 1e15}, {-1, 1.1e15}},
      {"/storage/disk/by_size/iops_per_gib", {1e-6, 1e9}, {0.9e-6, 1.1e9}},
      {"/storage/disk/by_size/least_iops", {0, 1e9}, {-1, 1.1e9}},
      {"/storage/disk/limits/iops", {1, 1e9}, {0.5, 1.1e9}},
      {"/storage/disk/limits/iops_per_gib", {1e-6, 1e9}, {0.9e-6, 1.1e9}},
      {"/transfer/free_gb_month", {0, 1e12}, {-1, 1.1e12}},
      {"/transfer/internet/0/up_to_gib", {1e-3, 1e15}, {0, -1, 1.1e15}},
  };
  for (const Limits& of : limits) {
    for (const double number : of.taken) EXPECT_NO_THROW(with(of.pointer, number)) << of.pointer << " " << number;
    for (const double number : of.refused)
      EXPECT_THAT(message_of<ConfigError>([&] { with(of.pointer, number); }), HasSubstr(of.pointer)) << number;
  }
}

TEST(PricedPlatform, LocatesWhatCannotBe) {
  const auto error = [](const char* pointer, const Json& value) {
    return message_of<ConfigError>([&] { with(pointer, value); });
  };
  EXPECT_THAT(error("/transfer/internet", {{{"per_gb", "1USD"}}, {{"per_gb", "2USD"}}}),
              HasSubstr("/transfer/internet/1: stands behind a tier without an \"up_to_gb\""));
  EXPECT_THAT(
      error("/transfer/internet", {{{"up_to_gb", 5}, {"per_gb", "1USD"}}, {{"up_to_gb", 5}, {"per_gb", "1USD"}}}),
      HasSubstr("/transfer/internet/1/up_to_gb: found 5, expected more than 5"));
  EXPECT_THAT(error("/transfer/internet", Json::array()), HasSubstr("at least one tier"));
  EXPECT_THAT(error("/transfer/internet", {{{"up_to_gb", 5}, {"per_gb", "1USD"}}}),
              HasSubstr("the last tier has an end"));
  EXPECT_THAT(error("/transfer/internet", {{{"up_to_gb", 5}, {"per_gib", "1USD"}}}), HasSubstr("/transfer/internet/0"));
  EXPECT_THAT(error("/storage/disk/per_mbps_month", "1USD"), HasSubstr("stands beside \"per_mbps_month\""));
  EXPECT_THAT(error("/instances/node/prices/0/per_hour", nullptr), HasSubstr("/instances/node/prices/0"));
  EXPECT_THAT(error("/instances/node/prices/1/zone", ""), HasSubstr("/instances/node/prices/1"));
  EXPECT_THAT(error("/instances/node/prices/0/as_of", "soon"), HasSubstr("a date as YYYY-MM-DD, or \"undated\""));
  // Every object refuses a key that it does not know.
  for (const char* place : {"/instances/node/prices/0/x", "/instances/node/prices/2/ownership/x", "/storage/disk/x",
                            "/storage/disk/by_size/x", "/storage/disk/limits/x", "/storage/disk/regions/far/x",
                            "/billing/x", "/transfer/x", "/transfer/internet/1/x", "/services/x"})
    EXPECT_THAT(error(place, 1), HasSubstr(place));
  // The same zone, region and market twice; other zones are other prices.
  const Json spot = Json::parse(kPriced).at(JsonPointer("/instances/node/prices/1"));
  Json other = spot;
  other["zone"] = "y";
  EXPECT_EQ(with("/instances/node/prices", {spot, other}).instance("node").prices.size(), 2u);
  EXPECT_THAT(error("/instances/node/prices", {spot, other, spot}),
              HasSubstr("/instances/node/prices/2: a second spot price in zone \"z\""));
}

// An amount of euros anywhere in the file becomes dollars; everything else stays what it is.
TEST(Currency, IsConvertedWhereverItStands) {
  const auto priced_in = [](const Json& currency, const char* pointer, const Json& value) {
    Json content = Json::parse(kPriced);
    content["currency"] = currency;
    content[JsonPointer(pointer)] = value;
    return read_platform(JsonNode::wrap(std::move(content), "euro.json", ""));
  };
  const Json euro = {{"code", "EUR"}, {"usd", 1.25}, {"as_of", "2026-11-01"}, {"source", "bank"}};
  const auto rate = [&](const char* text) {
    return priced_in(euro, "/services/load_balancer", text).services.load_balancer->value;
  };
  const auto amount = [&](const char* text) {
    return priced_in(euro, "/storage/disk/per_gib_month", text).storage_class("disk").rates.per_month->value;
  };
  EXPECT_EQ(rate("2EUR/h"), 2'500'000);
  EXPECT_EQ(rate("0.0000012EUR/h"), 2);  // 1.5 micro-dollars
  EXPECT_EQ(rate("2USD/h"), 2'000'000);
  EXPECT_EQ(amount("0.08EUR"), 100'000);
  EXPECT_EQ(amount("0EUR"), 0);
  EXPECT_EQ(amount("0.08USD"), 80'000);
  EXPECT_EQ(priced_in(euro, "/services/load_balancer", "1EUR/h").currency, "EUR at 1.25 USD of 2026-11-01");
  EXPECT_EQ(priced_in(euro, "/name", "EUR").name, "EUR");
  EXPECT_EQ(priced().currency, "");
  for (const char* bad : {"-1EUR/h", "1e12EUR/h", "nanEUR/h", "1.5.EUR/h", "EUR/h"})
    EXPECT_THROW(rate(bad), ConfigError) << bad;

  const auto error = [&](const char* key, const Json& value) {
    Json changed = euro;
    changed[key] = value;
    return message_of<ConfigError>([&] { priced_in(changed, "/name", "x"); });
  };
  for (const char* code : {"USD", "EU", "EURO"}) EXPECT_THAT(error("code", code), HasSubstr("/currency/code")) << code;
  for (const double usd : {0.9e-6, 1.1e6}) EXPECT_THAT(error("usd", usd), HasSubstr("/currency/usd")) << usd;
  EXPECT_THAT(error("as_of", "undated"), HasSubstr("/currency/as_of"));
  EXPECT_THAT(error("x", 1), HasSubstr("/currency/x"));
  for (const double usd : {1e-6, 1e6}) {
    Json changed = euro;
    changed["usd"] = usd;
    EXPECT_NO_THROW(priced_in(changed, "/name", "x")) << usd;
  }
}

// "12.34USD", "$12.34", "12.34 USD": dollars, with at most six decimals.
TEST(Amounts, AreDollarsHoweverTheyAreWritten) {
  const auto read = [](const Json& value, const char* per = "") {
    return read_amount(JsonNode::wrap({{"budget", value}}, "x.json", "").child("budget"), per, "500USD").value;
  };
  for (const char* text : {"12.34USD", "12.34 USD", "$12.34", "USD12.34", "USD  12.34", "12.34  usd", "12.34$"})
    EXPECT_EQ(read(text), 12'340'000) << text;
  EXPECT_EQ(read("0USD"), 0);
  EXPECT_EQ(read("0.000001USD"), 1);
  EXPECT_EQ(read("3USD/year", "year"), 3'000'000);
  EXPECT_EQ(read("3USD", "year"), 3'000'000);

  const auto error = [&](const Json& value, const char* per = "") {
    return message_of<ConfigError>([&] { read(value, per); });
  };
  EXPECT_THAT(error(5), HasSubstr("x.json: /budget: found 5, expected an amount with its unit, such as \"500USD\""));
  EXPECT_THAT(error("5"), AllOf(HasSubstr("an amount like \"500USD\""), HasSubstr("; write \"5USD\"")));
  EXPECT_THAT(error("5/year", "year"), HasSubstr("; write \"5USD\""));
  EXPECT_THAT(error("5USD/h"), HasSubstr("; it is an amount, not a rate"));
  EXPECT_THAT(error("5USD/h", "year"), HasSubstr("; it is for one year, which may follow as \"/year\""));
  for (const char* text : {"USD", "five USD", "-5USD", "1.2.3USD", "0.0000001USD", "5EUR", "5e3USD", "5USDUSD"}) {
    EXPECT_THAT(error(text), HasSubstr("zero or more, with at most six decimals")) << text;
    EXPECT_THAT(error(text), testing::Not(HasSubstr(";"))) << text;
  }
}

}  // namespace
}  // namespace ganymede::platforms
