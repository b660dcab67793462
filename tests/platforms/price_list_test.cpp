#include "platforms/price_list.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/errors.hpp"
#include "common/json.hpp"
#include "common/json_value.hpp"
#include "common/units.hpp"
#include "platforms/catalog.hpp"
#include "platforms/check.hpp"
#include "support/errors.hpp"
#include "support/temporary_folder.hpp"

namespace ganymede::platforms {
namespace {

using testing::AllOf;
using testing::HasSubstr;

const std::string kListedLab = R"({ "schema": "ganymede.platform/1", "provider": "aws", "name": "small",
  "sources": { "OLD": "a list of 2025" },
  "gpus": { "V100": { "memory": "16GiB", "fp32": "15.7Tflop/s", "memory_bandwidth": "900GB/s", "source": "OLD" } },
  "instances": {
    "p3.2xlarge": { "gpu": "V100", "gpus": 1, "source": "OLD", "prices": [
      { "region": "us-east-1", "market": "on-demand", "per_hour": "3USD/h", "as_of": "2025-01-01", "source": "OLD" },
      { "region": "us-east-1", "market": "spot", "per_hour": "1USD/h", "interrupted_per_month": 0.25,
        "as_of": "2025-01-01", "source": "OLD" } ] },
    "Standard_NC6s_v3": { "gpu": "V100", "gpus": 1, "source": "OLD" } } })";

class PriceLists : public testing::Test {
 protected:
  PriceList read(const std::string& name, const std::string& content) {
    PriceList list = read_price_list({folder.add(name, content)}, lab, options);
    unknown = list.unknown;
    return list;
  }
  std::string error(const std::string& name, const std::string& content) {
    return message_of<ConfigError>([&] { read(name, content); });
  }
  static Platform merged(const PriceList& list) {
    return read_platform(JsonNode::parse(merge_prices(kListedLab, list).text, "merged"));
  }

  TemporaryFolder folder;
  const Platform lab = read_platform(JsonNode::parse(kListedLab, "lab.json"));
  PriceListOptions options{.today = "2026-11-20", .as_of = "undated", .exchange = {}};
  std::map<std::string, int> unknown;
};

const Price& price(const Platform& platform, std::string_view instance, std::string_view region, Market market,
                   std::string_view zone = "") {
  return platform.price(platform.instance(instance), region, market, nullptr, nullptr, zone);
}

const char* const kSkyHead =
    "InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,GpuInfo,Price,SpotPrice,Region,AvailabilityZone\n";

TEST_F(PriceLists, SkyPilotsCatalogAsItComes) {
  options.as_of = "2026-11-19";
  const PriceList list = read(
      "vms.csv",
      std::string(kSkyHead) +
          "p3.2xlarge,V100,1.0,8.0,61.0,\"{'Gpus': [{'Name': 'V100', 'Count': 1}]}\",3.06,0.40,us-east-1,us-east-1a\n"
          "p3.2xlarge,V100,1.0,8.0,61.0,\"{'Gpus': []}\",3.06,0.38,us-east-1,us-east-1b\n"
          "p3.2xlarge,V100,1.0,8.0,61.0,,3.30,,eu-west-1,eu-west-1a\n"
          "m5.large,,,2.0,8.0,,0.096,0.03,us-east-1,us-east-1a\n");
  EXPECT_EQ(list.kind, "SkyPilot catalog");
  const Platform platform = merged(list);
  EXPECT_EQ(price(platform, "p3.2xlarge", "us-east-1", Market::on_demand).per_hour.value, 3'060'000);
  EXPECT_EQ(price(platform, "p3.2xlarge", "eu-west-1", Market::on_demand).per_hour.value, 3'300'000);
  const Price& region = price(platform, "p3.2xlarge", "us-east-1", Market::spot);
  EXPECT_EQ(region.per_hour.value, 380'000);  // the cheapest zone
  EXPECT_EQ(region.as_of, "2026-11-19");
  EXPECT_EQ(region.interrupted_per_month, 0.25);  // kept
  EXPECT_EQ(price(platform, "p3.2xlarge", "us-east-1", Market::spot, "us-east-1a").per_hour.value, 400'000);
  EXPECT_EQ(unknown.size(), 1U);
  EXPECT_TRUE(unknown.contains("m5.large"));
  EXPECT_THAT(region.origin.source, HasSubstr("vms.csv"));
}

const char* const kAws =
    R"({ "formatVersion": "v1.0", "offerCode": "AmazonEC2", "publicationDate": "2026-11-18T17:00:00Z",
  "products": {
    "A": { "sku": "A", "productFamily": "Compute Instance", "attributes": { "instanceType": "p3.2xlarge",
           "regionCode": "us-east-1", "operatingSystem": "Linux", "tenancy": "Shared", "preInstalledSw": "NA",
           "capacitystatus": "Used" } },
    "B": { "sku": "B", "productFamily": "Compute Instance", "attributes": { "instanceType": "p3.2xlarge",
           "regionCode": "us-east-1", "operatingSystem": "Windows", "tenancy": "Shared", "preInstalledSw": "NA" } } },
  "terms": {
    "OnDemand": { "A": { "A.1": { "priceDimensions": { "A.1.6YS": { "unit": "Hrs", "pricePerUnit": { "USD": "3.0600000000" } } } } },
                  "B": { "B.1": { "priceDimensions": { "B.1.6YS": { "unit": "Hrs", "pricePerUnit": { "USD": "9" } } } } } },
    "Reserved": { "A": {
      "A.2": { "termAttributes": { "LeaseContractLength": "1yr", "PurchaseOption": "No Upfront", "OfferingClass": "standard" },
               "priceDimensions": { "A.2.6": { "unit": "Hrs", "pricePerUnit": { "USD": "1.99" } } } },
      "A.3": { "termAttributes": { "LeaseContractLength": "1yr", "PurchaseOption": "All Upfront", "OfferingClass": "standard" },
               "priceDimensions": { "A.3.2": { "unit": "Quantity", "pricePerUnit": { "USD": "16000" } } } } } } } })";

TEST_F(PriceLists, AwsOwnPriceList) {
  const Platform platform = merged(read("index.json", kAws));
  const Price& list = price(platform, "p3.2xlarge", "us-east-1", Market::on_demand);
  EXPECT_EQ(list.per_hour.value, 3'060'000);  // not that of Windows
  EXPECT_EQ(list.as_of, "2026-11-18");
  EXPECT_EQ(price(platform, "p3.2xlarge", "us-east-1", Market::reserved_1y).per_hour.value, 1'990'000);
  EXPECT_EQ(price(platform, "p3.2xlarge", "us-east-1", Market::spot).per_hour.value, 1'000'000);  // as before
}

std::string azure(const std::string& price, const std::string& currency = "USD",
                  const std::string& more = R"("type": "Consumption", "skuName": "NC6s v3")") {
  return R"({ "BillingCurrency": "USD", "Items": [ { "currencyCode": ")" + currency + R"(", "retailPrice": )" + price +
         R"(, "armRegionName": "eastus", "effectiveStartDate": "2024-03-01T00:00:00Z", "armSkuName": "Standard_NC6s_v3",
         "productName": "Virtual Machines NCSv3 Series", "unitOfMeasure": "1 Hour", )" +
         more + " } ] }";
}

TEST_F(PriceLists, AzuresRetailPrices) {
  Platform platform = merged(read("azure.json", azure("3.06")));
  EXPECT_EQ(price(platform, "Standard_NC6s_v3", "eastus", Market::on_demand).per_hour.value, 3'060'000);
  // It has held since 2024, which does not say when the list was read.
  EXPECT_EQ(price(platform, "Standard_NC6s_v3", "eastus", Market::on_demand).as_of, "undated");
  platform = merged(read("azure.json", azure("0.40", "USD", R"("type": "Consumption", "skuName": "NC6s v3 Spot")")));
  EXPECT_EQ(price(platform, "Standard_NC6s_v3", "eastus", Market::spot).per_hour.value, 400'000);
  // A reservation's price is of the whole term: 8,760 USD over a year are 1 USD/h.
  platform =
      merged(read("azure.json",
                  azure("8760", "USD", R"("type": "Reservation", "reservationTerm": "1 Year", "skuName": "NC6s v3")")));
  EXPECT_EQ(price(platform, "Standard_NC6s_v3", "eastus", Market::reserved_1y).per_hour.value, 1'000'000);
}

TEST_F(PriceLists, OurOwnForms) {
  const Platform platform = merged(read("mine.csv",
                                        "instance,region,market,usd_per_hour,as_of,zone\n"
                                        "p3.2xlarge,us-east-1,spot,0.5,2026-11-01,\n"
                                        "p3.2xlarge,us-east-1,spot,0.45,2026-11-01,use1-az1\n"));
  EXPECT_EQ(price(platform, "p3.2xlarge", "us-east-1", Market::spot).per_hour.value, 500'000);
  EXPECT_EQ(price(platform, "p3.2xlarge", "us-east-1", Market::spot, "use1-az1").per_hour.value, 450'000);
  EXPECT_EQ(read("lab.json", kListedLab).prices.size(), 2U);
}

// Each part that makes a product another one: none of them is the plain machine's price.
TEST_F(PriceLists, AwsOfOtherSystemsAndTermsIsPassedOver) {
  const std::pair<const char*, const char*> others[] = {{"instanceType", "m5.large"},
                                                        {"operatingSystem", "RHEL"},
                                                        {"tenancy", "Dedicated"},
                                                        {"preInstalledSw", "SQL Std"},
                                                        {"capacitystatus", "AllocatedCapacityReservation"},
                                                        {"marketoption", "CapacityBlock"}};
  for (const auto& [attribute, other] : others) {
    Json list = Json::parse(kAws);
    list["products"]["A"]["attributes"][attribute] = other;
    EXPECT_THAT(error("index.json", list.dump()), HasSubstr("without a price of any instance")) << attribute;
  }
  Json list = Json::parse(kAws);
  list["products"]["A"]["attributes"].erase("capacitystatus");
  EXPECT_EQ(read("index.json", list.dump()).prices.size(), 2U);
  // Only standard reservations without an upfront payment count, by the hour.
  Json& reserved = list["terms"]["Reserved"]["A"]["A.2"];
  const std::pair<const char*, const char*> terms[] = {{"PurchaseOption", "Partial Upfront"},
                                                       {"OfferingClass", "convertible"}};
  for (const auto& [attribute, other] : terms) {
    const Json before = reserved;
    reserved["termAttributes"][attribute] = other;
    EXPECT_EQ(read("index.json", list.dump()).prices.size(), 1U) << attribute;
    reserved = before;
  }
  reserved["priceDimensions"]["A.2.6"]["unit"] = "Quantity";
  EXPECT_EQ(read("index.json", list.dump()).prices.size(), 1U);
  reserved["priceDimensions"]["A.2.6"]["unit"] = "Hrs";
  reserved["termAttributes"]["LeaseContractLength"] = "3yr";
  const PriceList three_years = read("index.json", list.dump());
  EXPECT_EQ(three_years.kind, "AWS price list");
  EXPECT_EQ(three_years.prices[1].price.market, Market::reserved_3y);
  EXPECT_EQ(three_years.prices[1].where,
            (folder.path() / "index.json").string() + ": /terms/Reserved/A/A.2/priceDimensions/A.2.6");
  list.erase("publicationDate");
  EXPECT_EQ(read("index.json", list.dump()).prices[0].price.as_of, "undated");
  list["products"] = Json::object();
  EXPECT_THAT(error("index.json", list.dump()), HasSubstr("without a price of any instance"));
}

// The file of a region has its terms behind its products, but JSON need not.
TEST_F(PriceLists, AwsTermsMayStandBeforeTheProducts) {
  const Json list = Json::parse(kAws);
  const std::string turned =
      R"({ "terms": )" + list["terms"].dump() + R"(, "products": )" + list["products"].dump() + " }";
  EXPECT_EQ(read("index.json", turned).prices.size(), 2U);
}

TEST_F(PriceLists, AzureOfOtherSystemsAndTermsIsPassedOver) {
  const auto item = [](const std::string& key, const Json& value) {
    Json list = Json::parse(azure("3.06"));
    list["Items"][0][key] = value;
    return list;
  };
  const std::pair<const char*, const char*> others[] = {{"type", "DevTestConsumption"},
                                                        {"productName", "Virtual Machines NCSv3 Series Windows"},
                                                        {"skuName", "NC6s v3 Low Priority"},
                                                        {"unitOfMeasure", "1 GB"},
                                                        {"effectiveStartDate", "2026-12-01T00:00:00Z"},  // to come
                                                        {"effectiveEndDate", "2026-11-20T00:00:00Z"},    // past
                                                        {"armSkuName", "Standard_D2"}};
  for (const auto& [key, other] : others)
    EXPECT_THAT(error("azure.json", item(key, other).dump()), HasSubstr("without a price of any instance")) << key;
  EXPECT_THAT(error("azure.json", R"({ "Items": [ {"type": "None"}, 5 ] })"),
              HasSubstr("azure.json: /Items/1: found no object"));
  EXPECT_THAT(error("azure.json", item("armRegionName", "").dump()),
              HasSubstr("/Items/0: Standard_NC6s_v3 has a price and no region"));
  EXPECT_THAT(error("azure.json", item("retailPrice", nullptr).dump()), HasSubstr("/Items/0: found a price of nan"));
  // 26,280 USD over three years are 1 USD/h.
  Json three = item("type", "Reservation");
  EXPECT_THAT(error("azure.json", three.dump()), HasSubstr("without a price of any instance"));
  three["Items"][0].update({{"reservationTerm", "3 Years"}, {"retailPrice", 26'280}});
  const PriceList list = read("azure.json", three.dump());
  EXPECT_EQ(list.kind, "Azure retail prices");
  EXPECT_EQ(list.prices[0].price.market, Market::reserved_3y);
  EXPECT_EQ(list.prices[0].price.per_hour.value, 1'000'000);
  options.as_of = "2026-11-19";
  EXPECT_EQ(read("azure.json", azure("3")).prices[0].price.as_of, "2026-11-19");
  EXPECT_EQ(read("azure.json", item("effectiveEndDate", "2026-11-21T00:00:00Z").dump()).prices.size(), 1U);
  EXPECT_EQ(read("azure.json", item("effectiveStartDate", nullptr).dump()).prices.size(), 1U);
  Json small = item("currencyCode", nullptr);
  small["items"] = small["Items"];
  small.erase("Items");
  EXPECT_EQ(read("azure.json", small.dump()).prices[0].where, (folder.path() / "azure.json").string() + ": /items/0");
}

TEST_F(PriceLists, FormsAreKnownByTheirContent) {
  const std::string table = "instance,region,market,usd_per_hour,as_of\np3.2xlarge,r,on-demand,0,undated\n";
  EXPECT_EQ(read("mine.csv", table).kind, "price table");
  EXPECT_EQ(read("mine.csv", table).prices[0].price.per_hour.value, 0);  // free is a price
  EXPECT_EQ(read("mine.csv", table).prices[0].where, (folder.path() / "mine.csv").string() + ": line 2");
  EXPECT_EQ(read("mine.json", "\xEF\xBB\xBF \n" + std::string(kListedLab)).kind, "platform file");
  EXPECT_EQ(read("mine.json", "// ours\n" + std::string(kListedLab)).kind, "platform file");
  EXPECT_THAT(error("mine.csv", "// ours\n" + std::string(kListedLab)), HasSubstr("mine.csv: line"));
  // Ten times the highest price of a GPU is a mistake.
  EXPECT_THAT(error("mine.csv", table + "p3.2xlarge,r,spot,150.01,undated\n"),
              HasSubstr("line 3: found a price of 150.01 USD/h of p3.2xlarge, expected 0.005 to 150 USD/h"));
  EXPECT_EQ(read("mine.csv", table + "p3.2xlarge,r,spot,150,undated\n").prices.size(), 2U);
  EXPECT_EQ(read("mine.csv", table + "p3.2xlarge,r,spot,1,2026-11-20\n").prices.size(), 2U);  // of today
  EXPECT_EQ(read("mine.csv", table + "p3.2xlarge,r,spot,,undated\n").prices.size(), 1U);
  EXPECT_THAT(error("mine.csv", table + "p3.2xlarge,r,spot,1 USD,undated\n"), HasSubstr("found \"1 USD\""));
  read("mine.csv", table + "m5.large,r,spot,1,undated\nm5.large,s,spot,1,undated\nm5.big,r,spot,1,undated\n");
  EXPECT_EQ(unknown, (std::map<std::string, int>{{"m5.large", 2}, {"m5.big", 1}}));
  EXPECT_THAT(error("mine.csv",
                    "instance,region,market,usd_per_hour,as_of\nm5.large,r,spot,1,undated\nm5.big,r,spot,1,undated\n"),
              HasSubstr("price table: without a price of any instance of the catalog; it has 2 others"));
}

TEST_F(PriceLists, SkyPilotsZonesAndAccelerators) {
  const auto rows = [&](const std::string& text) { return read("vms.csv", kSkyHead + text); };
  // A zone that is called as its region is none, and accelerators without an instance are only counted.
  const PriceList list = rows(
      "p3.2xlarge,V100,1,8,61,,3.06,0.40,r,r\n,TPU-v3,1,,,,8,2.4,r,r\np3.2xlarge,V100,1,8,61,,3.06,0.40,s,\n"
      "p3.2xlarge,V100,1,8,61,,,0.50,t,t1\np3.2xlarge,V100,1,8,61,,,0.30,t,t2\np3.2xlarge,V100,1,8,61,,,0.35,t,t3\n");
  EXPECT_EQ(unknown, (std::map<std::string, int>{{"TPU-v3", 1}}));
  std::vector<std::string> found;
  for (const ListedPrice& one : list.prices)
    found.push_back(one.price.region + " " + one.price.zone + " " + std::string(to_string(one.price.market)) + " " +
                    std::to_string(one.price.per_hour.value) + one.where.substr(one.where.rfind(':')));
  EXPECT_THAT(found, testing::UnorderedElementsAre("r  on-demand 3060000: line 2", "r  spot 400000: line 2",
                                                   "s  on-demand 3060000: line 4", "s  spot 400000: line 4",
                                                   "t t1 spot 500000: line 5", "t t2 spot 300000: line 6",
                                                   "t t3 spot 350000: line 7", "t  spot 300000: line 6"));
}

// One price is the same, one another, one new in a zone, one new for an instance that had none.
TEST_F(PriceLists, MergingCountsAndReplacesWholePrices) {
  const PriceList list = read("mine.csv",
                              "instance,region,market,usd_per_hour,as_of,zone\n"
                              "p3.2xlarge,us-east-1,on-demand,3,2026-11-01,\n"
                              "p3.2xlarge,us-east-1,spot,0.5,2026-11-02,\n"
                              "p3.2xlarge,us-east-1,spot,0.4,2026-11-03,z1\n"
                              "Standard_NC6s_v3,eastus,on-demand,3.06,undated,\n");
  const Merged merged = merge_prices(kListedLab, list);
  EXPECT_EQ(merged.same, 1U);
  EXPECT_EQ(merged.changed, 1U);
  EXPECT_EQ(merged.added, 2U);
  const Json file = Json::parse(merged.text);
  EXPECT_EQ(file["sources"]["OLD"], "a list of 2025");
  EXPECT_EQ(file["sources"]["UPDATE"], "price lists merged by ganymede catalog --update: a price table");
  const std::string source = "UPDATE: mine.csv";
  EXPECT_EQ(file["instances"]["p3.2xlarge"]["prices"], (Json{{{"region", "us-east-1"},
                                                              {"market", "on-demand"},
                                                              {"per_hour", "3.00USD/h"},
                                                              {"as_of", "2026-11-01"},
                                                              {"source", source}},
                                                             {{"region", "us-east-1"},
                                                              {"market", "spot"},
                                                              {"per_hour", "0.50USD/h"},
                                                              {"interrupted_per_month", 0.25},
                                                              {"as_of", "2026-11-02"},
                                                              {"source", source}},
                                                             {{"region", "us-east-1"},
                                                              {"zone", "z1"},
                                                              {"market", "spot"},
                                                              {"per_hour", "0.40USD/h"},
                                                              {"as_of", "2026-11-03"},
                                                              {"source", source}}}));
  EXPECT_EQ(file["instances"]["Standard_NC6s_v3"]["prices"].size(), 1U);
  EXPECT_EQ(merged.text, OrderedJson::parse(merged.text).dump(2) + "\n");  // as the catalogs are written
  // The amount of an owned machine follows from what it costs: a listed one is another.
  Json owned = Json::parse(kListedLab);
  owned["instances"]["p3.2xlarge"]["prices"][0].erase("per_hour");
  owned["instances"]["p3.2xlarge"]["prices"][0]["ownership"] = {{"capital", "1000USD"}, {"life_years", 4}};
  EXPECT_EQ(merge_prices(owned.dump(), list).changed, 2U);
}

TEST_F(PriceLists, AnotherCurrencyNeedsItsRate) {
  EXPECT_THAT(error("azure.json", azure("2.8", "EUR")),
              AllOf(HasSubstr("azure.json: /Items/0: found a price in EUR"), HasSubstr("--exchange EUR=")));
  options.exchange = {{"EUR", 1.1}};
  const Platform platform = merged(read("azure.json", azure("2.8", "EUR")));
  const Price& there = price(platform, "Standard_NC6s_v3", "eastus", Market::on_demand);
  EXPECT_EQ(there.per_hour.value, 3'080'000);
  EXPECT_EQ(there.origin.notes, "2.8 EUR at 1.1 USD");
}

TEST_F(PriceLists, NamesTheLineOfWhatCannotBe) {
  const std::string head = "instance,region,market,usd_per_hour,as_of\n";
  for (const char* bad : {"-1", "nan", "inf", "three"})
    EXPECT_THAT(error("mine.csv", head + "p3.2xlarge,us-east-1,spot," + bad + ",2026-11-01\n"),
                HasSubstr(std::string("mine.csv: line 2: usd_per_hour: found \"") + bad + "\""));
  EXPECT_THAT(error("azure.json", azure("-3.06")), HasSubstr("azure.json: /Items/0: found a price of -3.06"));
  EXPECT_THAT(error("azure.json", azure("\"NaN\"")), HasSubstr("azure.json: /Items/0: found a price of nan"));
  EXPECT_THAT(error("mine.csv", head + "p3.2xlarge,us-east-1,spot,1,2031-01-01\n"),
              HasSubstr("line 2: found the date 2031-01-01, which is in the future"));
  EXPECT_THAT(error("mine.csv", head + "p3.2xlarge,us-east-1,spot,1,last week\n"), HasSubstr("expected YYYY-MM-DD"));
  EXPECT_THAT(error("mine.csv", head + "p3.2xlarge,us-east-1,sport,1,2026-11-01\n"),
              HasSubstr("market: found \"sport\""));
  EXPECT_THAT(
      error("mine.csv", head + "p3.2xlarge,us-east-1,spot,1,2026-11-01\np3.2xlarge,us-east-1,spot,2,2026-11-01\n"),
      AllOf(HasSubstr("line 3: a second spot price of p3.2xlarge in us-east-1"), HasSubstr("line 2")));
  EXPECT_THAT(error("mine.csv", head + "p3.2xlarge,us-east-1,spot,1\n"),
              HasSubstr("line 2: found 4 cells, expected 5"));
  EXPECT_THAT(error("mine.csv", "a,b\n1,2\n"), HasSubstr("expected the columns instance"));
  EXPECT_THAT(error("mine.csv", ""), HasSubstr("is empty"));
  EXPECT_THAT(error("mine.csv", head + "m5.large,us-east-1,spot,1,2026-11-01\n"),
              HasSubstr("without a price of any instance of the catalog"));
  EXPECT_THAT(error("x.json", "{"), AllOf(HasSubstr("is not JSON"), testing::Not(HasSubstr("json.exception"))));
  EXPECT_THAT(error("x.json", "{}"), HasSubstr("expected a platform file"));
  // The same price twice is no contradiction.
  EXPECT_EQ(read("mine.csv", head + "p3.2xlarge,us-east-1,spot,1,2026-11-01\np3.2xlarge,us-east-1,spot,1,2026-11-01\n")
                .prices.size(),
            1U);
}

std::vector<std::string> kinds_at(const std::vector<Finding>& findings, const std::string& where) {
  std::vector<std::string> kinds;
  for (const Finding& finding : findings)
    if (finding.where == where) kinds.push_back(finding.kind);
  return kinds;
}

TEST(CheckPlatform, FlagsWhatShouldBeLookedAt) {
  const Platform platform = read_platform(JsonNode::parse(R"({ "schema": "ganymede.platform/1", "provider": "x",
    "sources": { "LIST": "a list" },
    "gpus": { "G": { "memory": "16GiB", "fp32": "10Tflop/s", "memory_bandwidth": "900GB/s", "source": "LIST",
                     "power": { "idle": "10W", "peak": "100W" } },
              "H": { "memory": "16GiB", "fp32": "10Tflop/s", "tensor": "1Tflop/s", "memory_bandwidth": "900TB/s", "source": "rumour" } },
    "instances": {
      "none": { "gpu": "G", "gpus": 1, "source": "LIST", "retired": "gone" },
      "some": { "gpu": "G", "gpus": 1, "source": "LIST", "prices": [
        { "region": "r", "market": "on-demand", "per_hour": "2USD/h", "as_of": "2026-11-01", "source": "LIST" },
        { "region": "r", "market": "spot", "per_hour": "2.50USD/h", "as_of": "2026-11-01", "source": "LIST" },
        { "region": "r", "market": "reserved-1y", "per_hour": "1USD/h", "as_of": "2025-01-01", "source": "LIST" },
        { "region": "r", "market": "reserved-3y", "per_hour": "2USD/h", "as_of": "2026-11-01", "source": "LIST" },
        { "region": "s", "market": "spot", "per_hour": "200USD/h", "as_of": "2030-01-01", "source": "LIST" },
        { "region": "t", "market": "on-demand", "per_hour": "0USD/h", "as_of": "undated", "source": "LIST",
          "unconfirmed": "heard" } ] } },
    "regions": { "r": { "source": "LIST" } } })",
                                                          "x.json"));
  const auto findings = check_platform(platform, "2026-11-20");
  using testing::ElementsAre;
  EXPECT_THAT(kinds_at(findings, "G"), ElementsAre());
  EXPECT_THAT(kinds_at(findings, "H"), ElementsAre("no source", "no power", "implausible", "implausible"));
  EXPECT_THAT(kinds_at(findings, "none"), ElementsAre("retired", "no price"));
  EXPECT_THAT(kinds_at(findings, "some r on-demand"), ElementsAre());
  EXPECT_THAT(kinds_at(findings, "some r spot"), ElementsAre("dearer"));
  EXPECT_THAT(kinds_at(findings, "some r reserved-1y"), ElementsAre("old price", "dates differ"));
  EXPECT_THAT(kinds_at(findings, "some r reserved-3y"), ElementsAre("dearer"));
  EXPECT_THAT(kinds_at(findings, "some s spot"), ElementsAre("in the future", "absurd price", "no list price"));
  EXPECT_THAT(kinds_at(findings, "some t on-demand"), ElementsAre("unconfirmed", "undated", "absurd price"));
  EXPECT_THAT(kinds_at(findings, "r"), ElementsAre("no carbon"));
}

// What nobody may ship: facts without a source, GPUs or prices that cannot be, discounts that are none.
TEST(CheckPlatform, FindsNoFaultsInTheCatalogs) {
  for (const std::string& provider : provider_names())
    for (const Finding& finding : check_platform(catalog(provider), "2026-11-20"))
      for (const char* fault : {"no source", "implausible", "absurd price", "dearer", "in the future"})
        EXPECT_NE(finding.kind, fault) << provider << ": " << finding.where << ": " << finding.what;
}

}  // namespace
}  // namespace ganymede::platforms
