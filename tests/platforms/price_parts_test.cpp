// Lists that do not have whole machines, or not all prices, and prices that changed much.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/errors.hpp"
#include "common/json.hpp"
#include "platforms/catalog.hpp"
#include "platforms/price_list.hpp"
#include "support/errors.hpp"
#include "support/temporary_folder.hpp"

namespace ganymede::platforms {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

class PriceParts : public testing::Test {
 protected:
  PriceList read(const std::string& text) {
    return read_price_list({folder.add("vms.csv", kHead + text)}, catalog("gcp"), options);
  }
  /// "a2-highgpu-8g r1 on-demand 29.39" of each price.
  static std::vector<std::string> lines(const PriceList& list) {
    std::vector<std::string> all;
    for (const ListedPrice& one : list.prices)
      all.push_back(one.instance + " " + (one.price.zone.empty() ? one.price.region : one.price.zone) + " " +
                    std::string(to_string(one.price.market)) + " " + decimal(one.price.per_hour));
    return all;
  }

  const std::string kHead =
      "InstanceType,vCPUs,MemoryGiB,AcceleratorName,AcceleratorCount,GpuInfo,Region,AvailabilityZone,Price,SpotPrice\n";
  TemporaryFolder folder;
  PriceListOptions options{.today = "2026-11-20", .as_of = "2026-11-19", .exchange = {}};
};

// A host of 4 USD and eight GPUs of 16 USD together are a machine of 20 USD. In r2 the GPUs have no price, in r3 none
// on spot, in r4 only four of them are priced.
TEST_F(PriceParts, AHostAndItsGpusAreSummed) {
  const PriceList list = read(
      ",,,A100,8.0,,r1,r1-a,16,7\n,,,A100,8.0,,r3,r3-a,16,\n,,,A100,4.0,,r4,r4-a,8,3\n"
      "a2-highgpu-8g,96,680,,,,r1,r1-a,4,2\na2-highgpu-8g,96,680,,,,r2,r2-a,4,2\na2-highgpu-8g,96,680,,,,r3,r3-a,4,2\n"
      "a2-highgpu-8g,96,680,,,,r4,r4-a,4,2\n");
  EXPECT_THAT(lines(list), UnorderedElementsAre("a2-highgpu-8g r1 on-demand 20.00", "a2-highgpu-8g r1-a spot 9.00",
                                                "a2-highgpu-8g r1 spot 9.00", "a2-highgpu-8g r3 on-demand 20.00"));
  const std::string file = (folder.path() / "vms.csv").string();
  EXPECT_THAT(list.parts, ElementsAre(file + ": line 6: a2-highgpu-8g in r2-a, without its 8 x A100",
                                      file + ": line 8: a2-highgpu-8g in r4-a, without its 8 x A100"));
  EXPECT_EQ(list.prices[0].price.origin.notes, "the list's a2-highgpu-8g and 8 x A100 together");
  EXPECT_TRUE(list.unknown.empty());
}

// The two sizes of an A100, and both kinds of an H100, are sold at prices of their own.
TEST_F(PriceParts, EachMachineHasTheGpusThatTheListNames) {
  const PriceList list = read(
      ",,,A100,1,,r,r-a,10,\n,,,A100-80GB,1,,r,r-a,20,\n,,,H100,8,,r,r-a,30,\n,,,H100-MEGA,8,,r,r-a,40,\n"
      ",,,L4,2,,r,r-a,50,\na2-highgpu-1g,,,,,,r,r-a,1,\na2-ultragpu-1g,,,,,,r,r-a,1,\na3-highgpu-8g,,,,,,r,r-a,1,\n"
      "a3-megagpu-8g,,,,,,r,r-a,1,\ng2-standard-24,,,,,,r,r-a,1,\n");
  EXPECT_THAT(lines(list), UnorderedElementsAre("a2-highgpu-1g r on-demand 11.00", "a2-ultragpu-1g r on-demand 21.00",
                                                "a3-highgpu-8g r on-demand 31.00", "a3-megagpu-8g r on-demand 41.00",
                                                "g2-standard-24 r on-demand 51.00"));
}

// A host that takes GPUs is a machine without them too, where no GPUs are sold as well.
TEST_F(PriceParts, AHostThatIsSoldAloneKeepsItsPrice) {
  const PriceList list = read(
      ",,,V100,1.0,,r1,r1-a,2.48,\n,,,P4,1.0,,r1,r1-a,0.6,\nn1-standard-8,8,30,,,,r1,r1-a,0.38,0.08\n"
      "n1-standard-8,8,30,,,,r2,r2-a,0.40,\nn1-standard-96,96,360,,,,r2,r2-a,4.56,\n");
  EXPECT_THAT(lines(list), UnorderedElementsAre("n1-standard-8 r1 on-demand 0.38", "n1-standard-8 r1-a spot 0.08",
                                                "n1-standard-8 r1 spot 0.08", "n1-standard-8+1xV100 r1 on-demand 2.86",
                                                "n1-standard-8 r2 on-demand 0.40"));
  EXPECT_TRUE(list.parts.empty());
  EXPECT_THAT(list.unknown, ElementsAre(testing::Key("P4")));
}

TEST_F(PriceParts, AListOfPartsAloneIsRefused) {
  EXPECT_THAT(message_of<ConfigError>([&] { read("a2-highgpu-8g,96,680,,,,r,r-a,4,2\n"); }),
              HasSubstr("line 2: a2-highgpu-8g in r-a, without its 8 x A100"));
}

TEST_F(PriceParts, AcceleratorsHaveOnePriceAndANumber) {
  const std::string host = "a2-highgpu-8g,96,680,,,,r1,r1-a,4,2\n", gpus = ",,,A100,8,,r1,r1-a,16,7\n";
  EXPECT_EQ(lines(read(gpus + gpus + host)), lines(read(gpus + host)));
  EXPECT_THAT(message_of<ConfigError>([&] { read(gpus + ",,,A100,8,,r1,r1-a,17,7\n" + host); }),
              HasSubstr("line 3: another price of 8 x A100 in r1-a than above"));
  for (const char* count : {"eight", "", "0", "-8", "nan"})
    EXPECT_THAT(message_of<ConfigError>([&] { read(",,,A100," + std::string(count) + ",,r1,r1-a,16,7\n" + host); }),
                testing::AllOf(HasSubstr("line 2"), HasSubstr("expected a number of GPUs")))
        << count;
}

// More than half is half and a micro-dollar more, up or down.
TEST_F(PriceParts, AChangeOfMoreThanHalfIsNamed) {
  const auto jumps = [&](const std::string& price) {
    const std::string list = "instance,region,market,usd_per_hour,as_of\na3-highgpu-8g,us-central1,on-demand," + price;
    return merge_prices(catalog_text("gcp"),
                        read_price_list({folder.add("mine.csv", list + ",2026-11-01\n")}, catalog("gcp"), options))
        .jumps;
  };
  const Platform& gcp = catalog("gcp");
  const MicroUsdPerHour before = find_price(gcp.instance("a3-highgpu-8g"), "us-central1", Market::on_demand)->per_hour;
  ASSERT_EQ(before.value % 2, 0);
  const auto times = [&](std::int64_t halves, std::int64_t more) {
    return jumps(decimal(MicroUsdPerHour{before.value / 2 * halves + more}));
  };
  EXPECT_TRUE(times(2, 0).empty());
  EXPECT_TRUE(times(1, 0).empty());
  EXPECT_TRUE(times(3, 0).empty());
  EXPECT_EQ(times(1, -1).size(), 1U);
  EXPECT_THAT(times(3, 1), ElementsAre(HasSubstr("line 2: a3-highgpu-8g in us-central1 on-demand: from " +
                                                 decimal(before) + " to ")));
}

std::string azure_page(const std::string& region, const std::string& next) {
  return R"({ "Items": [ { "currencyCode": "USD", "retailPrice": 3.06, "armRegionName": ")" + region +
         R"(", "type": "Consumption", "skuName": "NC6s v3", "armSkuName": "Standard_NC6s_v3",
         "productName": "Virtual Machines NCSv3 Series", "unitOfMeasure": "1 Hour" } ], "NextPageLink": )" +
         next + " }";
}

TEST_F(PriceParts, AzuresPagesAreOneList) {
  const std::string next = R"("https://prices.example/?$skip=1000")";
  const std::filesystem::path first = folder.add("1.json", azure_page("eastus", next)),
                              last = folder.add("2.json", azure_page("westus2", "null"));
  const Platform& azure = catalog("azure");
  EXPECT_THAT(message_of<ConfigError>([&] { read_price_list({first}, azure, options); }),
              HasSubstr("1.json: the list is not whole: among its pages is not https://prices.example/?$skip=1000"));
  for (const auto& pages : {std::vector{first, last}, std::vector{last, first}}) {
    const PriceList whole = read_price_list(pages, azure, options);
    EXPECT_EQ(whole.prices.size(), 2U);
  }
  const PriceList both = read_price_list({first, last}, azure, options);
  EXPECT_EQ(both.prices[0].price.origin.source, "UPDATE: 1.json");
  EXPECT_EQ(both.prices[1].price.origin.source, "UPDATE: 2.json");
  const auto other = folder.add("mine.csv", "instance,region,market,usd_per_hour,as_of\n");
  EXPECT_THAT(message_of<ConfigError>([&] {
                read_price_list({first, other}, azure, options);
              }),
              HasSubstr("mine.csv: price table: expected another page of the list in "));
}

}  // namespace
}  // namespace ganymede::platforms
