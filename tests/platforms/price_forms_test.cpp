// Price lists in the forms in which their owners and tools publish them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/errors.hpp"
#include "common/json.hpp"
#include "common/json_value.hpp"
#include "common/units.hpp"
#include "platforms/catalog.hpp"
#include "platforms/price_list.hpp"
#include "support/errors.hpp"
#include "support/temporary_folder.hpp"

namespace ganymede::platforms {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

class PriceForms : public testing::Test {
 protected:
  PriceList read(const std::string& provider, const std::vector<std::string>& texts, const std::string& end = ".json") {
    std::vector<std::filesystem::path> files;
    for (const std::string& text : texts) files.push_back(folder.add(std::to_string(files.size()) + end, text));
    return read_price_list(files, catalog(provider), options);
  }
  std::string error(const std::string& provider, const std::vector<std::string>& texts,
                    const std::string& end = ".json") {
    return message_of<ConfigError>([&] { read(provider, texts, end); });
  }
  /// "p3.2xlarge us-east-1 on-demand 3.06 2026-11-19" of each price.
  static std::vector<std::string> lines(const PriceList& list) {
    std::vector<std::string> all;
    for (const ListedPrice& one : list.prices)
      all.push_back(one.instance + " " + (one.price.zone.empty() ? one.price.region : one.price.zone) + " " +
                    std::string(to_string(one.price.market)) + " " + decimal(one.price.per_hour) + " " +
                    one.price.as_of);
    return all;
  }

  TemporaryFolder folder;
  PriceListOptions options{.today = "2026-11-20", .as_of = "2026-11-19", .exchange = {}};
};

Json plain_attributes(const std::string& instance) {
  return {{"instanceType", instance}, {"regionCode", "us-east-1"}, {"operatingSystem", "Linux"}, {"tenancy", "Shared"},
          {"preInstalledSw", "NA"},   {"capacitystatus", "Used"},  {"marketoption", "OnDemand"}};
}

/// A product as `aws pricing get-products` prints it: a text that is JSON.
std::string aws_product(const Json& attributes, const std::string& usd) {
  const Json offer = {{"priceDimensions", {{"X.1.6Y", {{"unit", "Hrs"}, {"pricePerUnit", {{"USD", usd}}}}}}}};
  const Json product = {{"product", {{"sku", "X"}, {"productFamily", "Compute Instance"}, {"attributes", attributes}}},
                        {"terms", {{"OnDemand", {{"X.1", offer}}}}},
                        {"publicationDate", "2026-11-17T20:12:03Z"}};
  return product.dump();
}

TEST_F(PriceForms, AwsProductsAsTheCommandPrintsThem) {
  Json windows = plain_attributes("p3.2xlarge");
  windows["operatingSystem"] = "Windows";
  Json page = {{"FormatVersion", "aws_v1"},
               {"PriceList", {aws_product(plain_attributes("p3.2xlarge"), "3.0600000000"), aws_product(windows, "9")}}};
  const PriceList list = read("aws", {page.dump()});
  EXPECT_EQ(list.kind, "AWS products");
  EXPECT_THAT(lines(list), ElementsAre("p3.2xlarge us-east-1 on-demand 3.06 2026-11-17"));
  EXPECT_EQ(lines(read("aws", {page["PriceList"].dump()})), lines(list));  // --query PriceList
  Json more = page;
  more["NextToken"] = "abc";
  EXPECT_THAT(error("aws", {more.dump()}), HasSubstr("the list is not whole: among its pages is not abc"));
  EXPECT_EQ(read("aws", {more.dump(), page.dump()}).prices.size(), 1U);
  page["PriceList"].push_back("{");
  EXPECT_THAT(error("aws", {page.dump()}), HasSubstr("0.json: /PriceList/2: expected a product as JSON"));
  page["NextToken"] = 5;
  EXPECT_THAT(error("aws", {page.dump()}), HasSubstr("0.json: /NextToken: expected the next page as text"));
}

// Products of machines that the catalog has not are not read, but counted if they could be rented.
TEST_F(PriceForms, AwsProductsOfOtherMachinesAreCountedUnread) {
  Json dedicated = plain_attributes("m7.large"), escaped = plain_attributes("p3.2xlarge");
  dedicated["tenancy"] = "Dedicated";
  escaped["instanceTypes"] = "a key that begins alike";
  std::string spaced = aws_product(plain_attributes("c7.large"), "1");
  spaced.replace(spaced.find("\":\"c7.large"), 3, "\" : \"");
  const Json page = {{"PriceList",
                      {aws_product(dedicated, "1"), spaced, aws_product(escaped, "3.06"),
                       aws_product(plain_attributes("m7.large"), "1")}}};
  const PriceList list = read("aws", {page.dump()});
  EXPECT_THAT(list.unknown, UnorderedElementsAre(testing::Pair("c7.large", 1), testing::Pair("m7.large", 1)));
  EXPECT_EQ(list.prices.size(), 1U);
}

// The list says how many GPUs a new size has; which, the other sizes of its family say.
TEST_F(PriceForms, AwsDescribesNewSizes) {
  Json fresh = plain_attributes("p5.24xlarge"), part = plain_attributes("g6.half"),
       alien = plain_attributes("p9.xlarge");
  fresh.update({{"gpu", "4"}, {"vcpu", "96"}, {"memory", "1,024 GiB"}});
  part["gpu"] = "0.5";
  alien["gpu"] = "8";
  const Json page = {{"PriceList", {aws_product(fresh, "27.52"), aws_product(part, "1"), aws_product(alien, "90")}}};
  const PriceList list = read("aws", {page.dump()});
  EXPECT_THAT(list.unknown, UnorderedElementsAre(testing::Key("g6.half"), testing::Key("p9.xlarge")));
  const Platform merged = read_platform(JsonNode::parse(merge_prices(catalog_text("aws"), list).text, "merged"));
  const Instance& instance = merged.instance("p5.24xlarge");
  EXPECT_EQ(instance.gpu, "H100");
  EXPECT_EQ(instance.gpus, 4);
  EXPECT_EQ(instance.vcpus, 96);
  EXPECT_EQ(instance.memory->si, 1024.0 * (1 << 30));
  EXPECT_EQ(instance.gpu_links->kind, GpuLinks::Kind::nvswitch);
  EXPECT_EQ(instance.gpu_links->origin.unconfirmed, "of p5.48xlarge");
  EXPECT_FALSE(instance.nic.has_value());
  EXPECT_EQ(instance.prices.size(), 1U);
}

const char* const kAwsCsv =
    R"("FormatVersion","v1.0"
"Disclaimer","This pricing list is for informational purposes only."
"Publication Date","2026-11-18T17:00:00Z"
"Version","20261118170000"
"OfferCode","AmazonEC2"
"SKU","TermType","Unit","PricePerUnit","Currency","LeaseContractLength","PurchaseOption","OfferingClass","Instance Type","vCPU","Memory","Tenancy","Operating System","GPU","CapacityStatus","Pre Installed S/W","Region Code"
"A","OnDemand","Hrs","3.0600000000","USD","","","","p3.2xlarge","8","61 GiB","Shared","Linux","1","Used","NA","us-east-1"
"A","Reserved","Hrs","1.9900000000","USD","1yr","No Upfront","standard","p3.2xlarge","8","61 GiB","Shared","Linux","1","Used","NA","us-east-1"
"A","Reserved","Quantity","16000","USD","1yr","All Upfront","standard","p3.2xlarge","8","61 GiB","Shared","Linux","1","Used","NA","us-east-1"
"B","OnDemand","Hrs","9","USD","","","","p3.2xlarge","8","61 GiB","Shared","Windows","1","Used","NA","us-east-1"
)";

TEST_F(PriceForms, AwsListAsATable) {
  EXPECT_THAT(lines(read("aws", {kAwsCsv}, ".csv")), ElementsAre("p3.2xlarge us-east-1 on-demand 3.06 2026-11-18",
                                                                 "p3.2xlarge us-east-1 reserved-1y 1.99 2026-11-18"));
  std::string bare = kAwsCsv;
  std::erase(bare, '"');
  EXPECT_EQ(lines(read("aws", {bare}, ".csv")), lines(read("aws", {kAwsCsv}, ".csv")));
  std::string bad = kAwsCsv;
  bad.replace(bad.find("3.0600000000"), 12, "-3");
  EXPECT_THAT(error("aws", {bad}, ".csv"), HasSubstr("0.csv: line 7: found a price of -3"));
  bad = std::string(kAwsCsv).substr(0, std::string(kAwsCsv).find("\"SKU\""));
  EXPECT_THAT(error("aws", {bad}, ".csv"), HasSubstr("0.csv: expected AWS's price list: a line with SKU"));
}

std::string spot_history(std::vector<Json> rows, const std::string& token = "") {
  Json list = {{"SpotPriceHistory", Json::array()}, {"NextToken", token}};
  for (Json& row : rows) {
    row["ProductDescription"] = row.value("ProductDescription", "Linux/UNIX");
    row["InstanceType"] = "p3.2xlarge";
    list["SpotPriceHistory"].push_back(row);
  }
  return list.dump();
}

// The last price of each zone counts, and the lowest of these is the region's; all hold until the newest one.
TEST_F(PriceForms, AwsSpotPriceHistory) {
  const std::vector<Json> first = {
      {{"AvailabilityZone", "us-east-1a"}, {"SpotPrice", "0.90"}, {"Timestamp", "2026-11-18T10:00:00+00:00"}},
      {{"AvailabilityZone", "us-east-1a"}, {"SpotPrice", "0.80"}, {"Timestamp", "2026-11-18T12:00:00+00:00"}},
      {{"AvailabilityZone", "us-east-1b"}, {"SpotPrice", "1.10"}, {"Timestamp", "2026-11-11T10:00:00.000Z"}}};
  const std::vector<Json> last = {
      {{"AvailabilityZone", "us-east-1a"}, {"SpotPrice", "0.50"}, {"Timestamp", "2026-11-17T10:00:00+00:00"}},
      {{"AvailabilityZone", "us-east-1a"},
       {"SpotPrice", "5"},
       {"Timestamp", "2026-11-18T13:00:00Z"},
       {"ProductDescription", "Windows"}}};
  const auto wanted =
      UnorderedElementsAre("p3.2xlarge us-east-1a spot 0.80 2026-11-18", "p3.2xlarge us-east-1b spot 1.10 2026-11-18",
                           "p3.2xlarge us-east-1 spot 0.80 2026-11-18");
  EXPECT_THAT(lines(read("aws", {spot_history(first, "more"), spot_history(last)})), wanted);
  EXPECT_THAT(error("aws", {spot_history(first, "more")}), HasSubstr("the list is not whole"));
  std::vector<Json> two = {first[0], first[0]};
  two[1]["SpotPrice"] = "0.95";
  EXPECT_THAT(
      error("aws", {spot_history(two)}),
      HasSubstr("/SpotPriceHistory/1: a second spot price of p3.2xlarge in us-east-1a at 2026-11-18T10:00:00Z"));
  two[1] = {{"AvailabilityZone", "somewhere"}, {"SpotPrice", "1"}, {"Timestamp", "2026-11-18T10:00:00Z"}};
  EXPECT_THAT(error("aws", {spot_history(two)}), HasSubstr("/SpotPriceHistory/1: found the zone \"somewhere\""));
  two[1] = {{"AvailabilityZone", "us-east-1a"}, {"SpotPrice", "1"}, {"Timestamp", "yesterday"}};
  EXPECT_THAT(error("aws", {spot_history(two)}), HasSubstr("/SpotPriceHistory/1: found the time \"yesterday\""));
  // Numbers of zones are the same in all accounts.
  two = {first[0]};
  two[0]["AvailabilityZoneId"] = "use1-az4";
  EXPECT_EQ(read("aws", {spot_history(two)}).prices[0].price.zone, "use1-az4");
}

Json google_sku(const std::string& description, const std::string& group, const std::string& usage,
                const std::string& unit, double usd) {
  const double whole = std::floor(usd);
  return {{"skuId", description},
          {"description", description},
          {"category", {{"resourceFamily", "Compute"}, {"resourceGroup", group}, {"usageType", usage}}},
          {"serviceRegions", {"us-central1"}},
          {"pricingInfo",
           {{{"pricingExpression",
              {{"usageUnit", unit},
               {"tieredRates",
                {{{"unitPrice",
                   {{"currencyCode", "USD"},
                    {"units", std::to_string(static_cast<int>(whole))},
                    {"nanos", std::lround((usd - whole) * 1e9)}}}}}}}}}}}};
}

// 12 vCPUs and 85 GiB with one A100: 12 x 0.03 + 85 x 0.004 + 3 = 3.70 USD; eight with 80 GB also have 3,000 GiB of
// local disk: 96 x 0.03 + 1,360 x 0.004 + 8 x 4 + 3,000 x 0.073 / 730 = 40.62 USD.
TEST_F(PriceForms, GooglesPartsAreComposed) {
  Json page = {{"skus",
                {google_sku("A2 Instance Core running in Americas", "CPU", "OnDemand", "h", 0.03),
                 google_sku("A2 Instance Ram running in Americas", "RAM", "OnDemand", "GiBy.h", 0.004),
                 google_sku("Nvidia Tesla A100 GPU running in Americas", "GPU", "OnDemand", "h", 3),
                 google_sku("Nvidia Tesla A100 80GB GPU running in Iowa", "GPU", "OnDemand", "h", 4),
                 google_sku("SSD backed Local Storage", "LocalSSD", "OnDemand", "GiBy.mo", 0.073),
                 google_sku("Commitment v1: A2 Cpu in Americas for 1 Year", "CPU", "Commit1Yr", "h", 0.01),
                 google_sku("Nvidia Tesla A100 GPU attached to Sole Tenancy VMs running in Americas", "GPU", "OnDemand",
                            "h", 9)}},
               {"nextPageToken", ""}};
  const PriceList list = read("gcp", {page.dump()});
  EXPECT_EQ(list.kind, "Google SKUs");
  EXPECT_THAT(lines(list), testing::IsSupersetOf({"a2-highgpu-1g us-central1 on-demand 3.70 2026-11-19",
                                                  "a2-ultragpu-8g us-central1 on-demand 40.62 2026-11-19"}));
  EXPECT_EQ(list.prices.size(), 9U);  // all of the A2 series, on demand
  EXPECT_EQ(list.prices[0].price.origin.notes, "vCPUs, memory, GPUs and local disks together");
  // Without a price of the GPU there, no machine has a price.
  page["skus"].erase(2);
  EXPECT_THAT(read("gcp", {page.dump()}).parts,
              testing::Contains(HasSubstr("SKU A2 Instance Core running in Americas: a2-highgpu-8g in us-central1 "
                                          "on-demand, without its 8 x A100")));
  page["skus"].erase(2);
  EXPECT_THAT(error("gcp", {page.dump()}), HasSubstr("without a price of any instance"));
  Json euros = page;
  euros["skus"][0]["pricingInfo"][0]["pricingExpression"]["tieredRates"][0]["unitPrice"]["currencyCode"] = "EUR";
  EXPECT_THAT(error("gcp", {euros.dump()}), HasSubstr("expected EUR as before"));
  page["skus"].push_back(google_sku("A2 Instance Core running in Iowa", "CPU", "OnDemand", "h", 0.05));
  EXPECT_THAT(error("gcp", {page.dump()}), HasSubstr("a second price of A2 Core in us-central1: 0.05 here, 0.03 at"));
  page["nextPageToken"] = "next";
  EXPECT_THAT(error("gcp", {page.dump()}), HasSubstr("a second price"));
}

TEST_F(PriceForms, GooglesSpotAndAttachedGpus) {
  const Json page = {{"skus",
                      {google_sku("Spot Preemptible N1 Predefined Instance Core running in Americas", "N1Standard",
                                  "Preemptible", "h", 0.01),
                       google_sku("Spot Preemptible N1 Predefined Instance Ram running in Americas", "N1Standard",
                                  "Preemptible", "GiBy.h", 0.001),
                       google_sku("Nvidia Tesla V100 GPU attached to Spot Preemptible VMs running in Americas", "GPU",
                                  "OnDemand", "h", 0.74)}}};
  // 8 vCPUs and 30 GiB are 0.11 USD; with one V100 0.85 USD.
  EXPECT_THAT(lines(read("gcp", {page.dump()})),
              testing::IsSupersetOf({"n1-standard-8 us-central1 spot 0.11 2026-11-19",
                                     "n1-standard-8+1xV100 us-central1 spot 0.85 2026-11-19"}));
}

TEST_F(PriceForms, InstancesOfVantage) {
  Json row = {{"instance_type", "p3.2xlarge"},
              {"vCPU", 8},
              {"memory", 61.0},
              {"GPU", 1},
              {"GPU_model", "NVIDIA Tesla V100"},
              {"GPU_memory", 16},
              {"pricing",
               {{"us-east-1",
                 {{"linux",
                   {{"ondemand", "3.06"},
                    {"spot_avg", "1.2"},
                    {"spot_min", "1.1"},
                    {"reserved", {{"yrTerm1Standard.noUpfront", "1.99"}, {"yrTerm1Standard.allUpfront", "1.7"}}}}},
                  {"mswin", {{"ondemand", "3.4"}}}}},
                {"eu-west-1", {{"linux", {{"ondemand", "N/A"}, {"spot_min", "0"}}}}}}}};
  Json fresh = {{"instance_type", "g6.new"},
                {"vCPU", 16},
                {"memory", 64},
                {"GPU", 2},
                {"GPU_model", "NVIDIA L4"},
                {"GPU_memory", 48},
                {"pricing", {{"us-east-1", {{"linux", {{"ondemand", "1.5"}}}}}}}};
  Json alien = fresh;
  alien.update({{"instance_type", "x1.y"}, {"GPU_model", "AMD Radeon Pro V520"}});
  const PriceList list = read("aws", {Json{row, fresh, alien}.dump()});
  EXPECT_EQ(list.kind, "instances of ec2instances.info");
  EXPECT_THAT(lines(list), UnorderedElementsAre("p3.2xlarge us-east-1 on-demand 3.06 2026-11-19",
                                                "p3.2xlarge us-east-1 spot 1.10 2026-11-19",
                                                "p3.2xlarge us-east-1 reserved-1y 1.99 2026-11-19",
                                                "g6.new us-east-1 on-demand 1.50 2026-11-19"));
  EXPECT_EQ(list.fresh.at("g6.new").gpu, "L4");
  EXPECT_THAT(list.no_sheet, ElementsAre(testing::Pair("AMD Radeon Pro V520",
                                                       HasSubstr("0.json: /2: x1.y has 2 x AMD Radeon Pro V520"))));
  row["pricing"]["us-east-1"]["linux"]["ondemand"] = "three";
  EXPECT_THAT(error("aws", {Json::array({row}).dump()}),
              HasSubstr("0.json: /0/pricing/us-east-1/linux/ondemand: found a price of nan"));
}

Json usage(const std::string& name, const std::string& price, int machines) {
  return {{"name", name}, {"unit", "hours"}, {"monthlyQuantity", std::to_string(730 * machines)}, {"price", price}};
}

std::string breakdown(const Json& components) {
  const Json resource = {{"name", "node"}, {"costComponents", components}};
  return Json{{"version", "0.2"},
              {"currency", "USD"},
              {"timeGenerated", "2026-11-16T09:00:00Z"},
              {"projects", {{{"name", "lab"}, {"breakdown", {{"resources", {resource}}}}}}}}
      .dump();
}

TEST_F(PriceForms, BreakdownOfInfracost) {
  const Json aws = {usage("Instance usage (Linux/UNIX, on-demand, p3.2xlarge)", "3.06", 2),
                    usage("CPU credits", "0.05", 1)};
  EXPECT_THAT(error("aws", {breakdown(aws)}),
              HasSubstr("0.json: /projects/0/breakdown/resources/0/costComponents/0: the breakdown does not say in "
                        "which region"));
  options.region = "us-esat-1";
  EXPECT_THAT(error("aws", {breakdown(aws)}),
              HasSubstr("--region us-esat-1: the catalog aws has no price there; did you mean \"us-east-1\"?"));
  options.region = "us-east-1";
  EXPECT_THAT(lines(read("aws", {breakdown(aws)})), ElementsAre("p3.2xlarge us-east-1 on-demand 3.06 2026-11-16"));
  // Google's GPUs are components of their own: 0.38 and 2.48 USD for each of two machines.
  options.region = "us-central1";
  const Json google = {usage("Instance usage (Linux/UNIX, preemptible, n1-standard-8)", "0.38", 2),
                       usage("NVIDIA Tesla V100 (preemptible)", "2.48", 2)};
  EXPECT_THAT(lines(read("gcp", {breakdown(google)})),
              ElementsAre("n1-standard-8+1xV100 us-central1 spot 2.86 2026-11-16"));
  const Json host = {usage("Instance usage (Linux/UNIX, on-demand, a2-highgpu-1g)", "0.74", 1)};
  EXPECT_THAT(error("gcp", {breakdown(host)}), HasSubstr("a2-highgpu-1g, without its GPUs"));
}

TEST_F(PriceForms, SkyPilotDescribesMachines) {
  const PriceList list = read("aws",
                              {"InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,Price,SpotPrice,Region\n"
                               "g6e.new,L4,2.0,16.0,64.0,1.5,0.0,us-east-1\np9.new,B999,8,192,2048,90,,us-east-1\n"
                               "m9.new,,,4,16,0.2,,us-east-1\np3.2xlarge,V100,1,8,61,3.06,,us-east-1\n"},
                              ".csv");
  EXPECT_THAT(lines(list), ElementsAre("g6e.new us-east-1 on-demand 1.50 2026-11-19",
                                       "p3.2xlarge us-east-1 on-demand 3.06 2026-11-19"));
  EXPECT_THAT(list.unknown, UnorderedElementsAre(testing::Key("p9.new"), testing::Key("m9.new")));
  EXPECT_THAT(list.no_sheet, ElementsAre(testing::Pair("B999", HasSubstr("line 3: p9.new has 8 x B999"))));
  // None of its machines is the catalog's: it is another cloud's list.
  EXPECT_THAT(error("aws",
                    {"InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,Price,SpotPrice,Region\n"
                     "gpu_8x_v100,V100,8,92,448,6.32,,us-east-1\n"},
                    ".csv"),
              HasSubstr("without a price of any instance of the catalog; it has 1 other"));
}

TEST_F(PriceForms, AbsurdPricesAndTwoCurrenciesAreErrors) {
  const std::string head = "instance,region,market,usd_per_hour,as_of\n";
  const std::string row = "p4d.24xlarge,us-east-1,on-demand,";
  EXPECT_THAT(error("aws", {head + row + "1201,undated\n"}, ".csv"),
              HasSubstr("0.csv: line 2: found a price of 1201 USD/h of p4d.24xlarge, expected 0.005 to 150 USD/h for "
                        "each of its 8 devices"));
  EXPECT_EQ(read("aws", {head + row + "1200,undated\n"}, ".csv").prices.size(), 1U);
  EXPECT_THAT(error("aws", {head + row + "0.03,undated\n"}, ".csv"), HasSubstr("line 2: found a price of 0.03 USD/h"));
  Json azure = {{"Items", Json::array()}};
  for (const char* currency : {"EUR", "USD"})
    azure["Items"].push_back({{"currencyCode", currency},
                              {"retailPrice", 3},
                              {"armRegionName", currency},
                              {"type", "Consumption"},
                              {"skuName", "NC6s v3"},
                              {"armSkuName", "Standard_NC6s_v3"},
                              {"unitOfMeasure", "1 Hour"}});
  options.exchange = {{"EUR", 1.1}};
  EXPECT_THAT(error("azure", {azure.dump()}),
              HasSubstr("0.json: /Items/1: found a price in USD, expected EUR as before"));
}

// A page names the next one by how many prices lie before that.
TEST_F(PriceForms, AzuresMissingPagesAreFound) {
  const auto page = [](const std::string& region, const std::string& next) {
    return Json{{"Items",
                 {{{"retailPrice", 3},
                   {"armRegionName", region},
                   {"type", "Consumption"},
                   {"skuName", "NC6s v3"},
                   {"armSkuName", "Standard_NC6s_v3"},
                   {"unitOfMeasure", "1 Hour"}}}},
                {"NextPageLink", next.empty() ? Json() : Json("https://prices.example/?$filter=x&$skip=" + next)}}
        .dump();
  };
  const std::string one = page("a", "1000"), two = page("b", "2000"), three = page("c", "3000"), last = page("d", "");
  EXPECT_EQ(read("azure", {last, three, one, two}).prices.size(), 4U);
  EXPECT_EQ(read("azure", {one, last}).prices.size(), 2U);
  EXPECT_THAT(error("azure", {one}), AllOf(HasSubstr("0.json: the list is not whole"), HasSubstr("$skip=1000")));
  EXPECT_THAT(error("azure", {one, three, last}), HasSubstr("is not the page that names $skip=2000 as the next one"));
  EXPECT_THAT(error("azure", {two, three, last}), HasSubstr("is not the page that names $skip=1000 as the next one"));
  EXPECT_THAT(error("azure", {two, last}), HasSubstr("$skip=1000"));
  EXPECT_THAT(error("azure", {one, two}), HasSubstr("$skip=2000"));
}

}  // namespace
}  // namespace ganymede::platforms
