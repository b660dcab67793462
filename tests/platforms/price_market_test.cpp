// Offers of marketplaces, on which hosts ask prices of their own.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/errors.hpp"
#include "common/json.hpp"
#include "common/json_value.hpp"
#include "common/units.hpp"
#include "platforms/price_doubt.hpp"
#include "platforms/price_list.hpp"
#include "support/errors.hpp"
#include "support/temporary_folder.hpp"

namespace ganymede::platforms {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const char* const kMarket = R"({ "schema": "ganymede.platform/1", "provider": "vast", "name": "vast",
  "gpus": { "A100-80GB": { "family": "A100", "memory": "80GiB", "fp32": "19.5Tflop/s", "memory_bandwidth": "2TB/s" },
            "A100-80GB-PCIE": { "family": "A100", "memory": "80GiB", "fp32": "19.5Tflop/s", "memory_bandwidth": "2TB/s" },
            "RTX4090": { "memory": "24GiB", "fp32": "82Tflop/s", "memory_bandwidth": "1TB/s" } },
  "instances": {
    "1x-RTX4090": { "gpu": "RTX4090", "gpus": 1, "prices": [
      { "region": "France, FR, EU", "market": "on-demand", "per_hour": "0.5USD/h", "as_of": "2026-11-01" } ] },
    "2x_A100-SXM_COMMUNITY": { "gpu": "A100-80GB", "gpus": 2, "host_link": { "bandwidth": "24GB/s", "latency": "1us" } },
    "1x_A100-PCIE_SECURE": { "gpu": "A100-80GB-PCIE", "gpus": 1 } } })";

class Marketplaces : public testing::Test {
 protected:
  PriceList read(const Json& list) { return read_price_list({folder.add("list.json", list.dump())}, market, options); }
  std::string error(const Json& list) {
    return message_of<ConfigError>([&] { read(list); });
  }

  TemporaryFolder folder;
  const Platform market = read_platform(JsonNode::parse(kMarket, "market.json"));
  PriceListOptions options{.today = "2026-11-20", .as_of = "2026-11-19", .exchange = {}};
};

Json offer(double price, const std::string& gpu = "RTX 4090") {
  return {{"gpu_name", gpu},       {"num_gpus", 1},        {"gpu_ram", 24564},
          {"dph_total", price},    {"min_bid", price / 2}, {"geolocation", "France, FR"},
          {"reliability2", 0.981}, {"rentable", true},     {"rented", false}};
}

// The median of 0.30, 0.40 and 0.90 USD, and all of them: of fewer than 40 offers none can be left out at an end.
TEST_F(Marketplaces, OffersAreADistribution) {
  Json taken = offer(0.1);
  taken["rented"] = true;
  const PriceList list = read({{"offers", {offer(0.9), offer(0.3), offer(0.4), taken, offer(0.2, "RTX 3090")}}});
  EXPECT_EQ(list.kind, "Vast.ai offers");
  ASSERT_EQ(list.prices.size(), 2U);
  EXPECT_EQ(list.prices[0].instance, "1x-RTX4090");
  EXPECT_EQ(list.prices[0].price.region, "France, FR, EU");
  EXPECT_EQ(list.prices[0].price.per_hour.value, 400'000);
  EXPECT_EQ(list.prices[0].price.origin.unconfirmed,
            "median of 3 hosts' offers, which ask 0.3 to 0.9 USD/h; hosts differ and may withdraw; "
            "reliability 98.1 %");
  EXPECT_EQ(list.prices[0].price.spread->first.value, 300'000);
  EXPECT_EQ(list.prices[0].price.spread->second.value, 900'000);
  EXPECT_EQ(list.prices[1].price.market, Market::spot);
  EXPECT_EQ(list.prices[1].price.per_hour.value, 200'000);
  EXPECT_THAT(list.prices[1].price.origin.unconfirmed, HasSubstr("waits until its bid is the highest again"));
  EXPECT_THAT(list.unknown, ElementsAre(testing::Key("1x RTX 3090")));
  const Json merged = Json::parse(merge_prices(kMarket, list).text);
  EXPECT_THAT(merged["instances"]["1x-RTX4090"]["prices"][0]["unconfirmed"].get<std::string>(),
              HasSubstr("median of 3 hosts' offers"));
  // A plan's interval has the spread, as the merged platform states it.
  const Platform read_again = read_platform(JsonNode::parse(merge_prices(kMarket, list).text, "merged.json"));
  const Instance& machine = read_again.instance("1x-RTX4090");
  const PriceDoubt doubt = price_doubt(machine, machine.prices[0], {"2026-11-20", 365});
  EXPECT_DOUBLE_EQ(doubt.low, 0.3 / 0.4);
  EXPECT_DOUBLE_EQ(doubt.high, 0.9 / 0.4);
  EXPECT_THAT(doubt.why, HasSubstr("reliability 98.1 %"));
  EXPECT_FALSE(read(Json::array({offer(0.5)})).prices[0].price.spread.has_value());
  EXPECT_THAT(read(Json::array({offer(0.5)})).prices[0].price.origin.unconfirmed, HasSubstr("one host's offer;"));
  EXPECT_THAT(error({{"offers", {offer(0.5), offer(-1)}}}),
              HasSubstr("list.json: /offers/1: expected a dph_total above 0"));
  Json bad = offer(0.5);
  bad["min_bid"] = -1;
  EXPECT_THAT(error({{"offers", {offer(0.5), bad}}}), HasSubstr("/offers/1: found -1 USD/h for each of its GPUs"));
  EXPECT_THAT(error({{"offers", {offer(0.5), offer(500), offer(0.6)}}}), HasSubstr("/offers/1: found 500 USD/h"));
  EXPECT_THAT(error({{"offers", {5}}}), HasSubstr("/offers/0: found no gpu_name"));
}

TEST_F(Marketplaces, RunPodsGpusAreSoldOneByOne) {
  const Json sxm = {{"id", "NVIDIA A100-SXM4-80GB"}, {"displayName", "A100 SXM"}, {"memoryInGb", 80},
                    {"communityPrice", 1.39},        {"securePrice", 1.79},       {"communitySpotPrice", 0.7},
                    {"secureSpotPrice", nullptr}};
  const Json pcie = {{"displayName", "A100 PCIe"}, {"memoryInGb", 80}, {"communityPrice", 0}, {"securePrice", 1.59}};
  const Json other = {{"displayName", "MI300X"}, {"memoryInGb", 192}, {"securePrice", 2.5}};
  const PriceList list = read({{"data", {{"gpuTypes", {sxm, pcie, other}}}}});
  EXPECT_EQ(list.kind, "RunPod GPUs");
  std::vector<std::string> found;
  for (const ListedPrice& one : list.prices)
    found.push_back(one.instance + " " + one.price.region + " " + std::string(to_string(one.price.market)) + " " +
                    decimal(one.price.per_hour));
  EXPECT_THAT(found, ElementsAre("2x_A100-SXM_COMMUNITY any on-demand 2.78", "2x_A100-SXM_COMMUNITY any spot 1.40",
                                 "1x_A100-PCIE_SECURE any on-demand 1.59"));
  EXPECT_THAT(list.prices[0].price.origin.unconfirmed, HasSubstr("hosts differ and may withdraw"));
  EXPECT_THAT(list.prices[1].price.origin.unconfirmed, HasSubstr("ends a pod 5 s after a notice"));
  EXPECT_EQ(list.prices[2].price.origin.unconfirmed, "");
  EXPECT_THAT(list.unknown, ElementsAre(testing::Key("MI300X")));
  Json dear = sxm;
  dear["communityPrice"] = "much";
  EXPECT_THAT(error({{"gpuTypes", Json::array({dear})}}), HasSubstr("/gpuTypes/0/communityPrice: expected a number"));
}

}  // namespace
}  // namespace ganymede::platforms
