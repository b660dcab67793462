#include "platforms/catalog.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>

#include "common/file.hpp"

namespace ganymede {
namespace {

using namespace literals;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsSupersetOf;
using testing::StartsWith;

const std::filesystem::path kFolder = std::filesystem::path(GANYMEDE_SOURCE_DIR) / "platforms/catalog";

/// A source opens with a short name of the file's table, or says that it is an assumption.
bool names_a_source(const Platform& platform, const Origin& origin) {
  if (origin.source.starts_with("assumption: ")) return true;
  return std::any_of(platform.sources.begin(), platform.sources.end(),
                     [&](const auto& known) { return origin.source.starts_with(known.first); });
}

TEST(Catalog, EmbedsEveryFileOfTheFolderAsItIs) {
  std::set<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder)) files.insert(entry.path().stem().string());
  EXPECT_EQ(std::set<std::string>(provider_names().begin(), provider_names().end()), files);
  EXPECT_THAT(provider_names(), IsSupersetOf({"aws", "azure", "gcp", "genesis", "ibm", "private"}));
  EXPECT_TRUE(is_provider("aws"));
  EXPECT_FALSE(is_provider("AWS"));
  EXPECT_FALSE(is_provider("aws.json"));
  for (const std::string& provider : provider_names())
    EXPECT_EQ(catalog_text(provider), read_file(kFolder / (provider + ".json"))) << provider;
}

TEST(Catalog, EveryFactHasASource) {
  for (const std::string& provider : provider_names()) {
    const Platform& platform = catalog(provider);
    const auto check = [&](const Origin& origin, const std::string& what) {
      EXPECT_TRUE(names_a_source(platform, origin)) << provider << ": " << what << ": \"" << origin.source << '"';
    };
    for (const Gpu& gpu : platform.gpus) check(gpu.origin, gpu.name);
    for (const Region& region : platform.regions) check(region.origin, region.name);
    for (const Storage& storage : platform.storage) check(storage.origin, storage.name);
    check(platform.fabric.origin, "fabric");
    check(platform.provisioning.origin, "provisioning");
    check(platform.billing.origin, "billing");
    if (platform.transfer.zone || !platform.transfer.internet.empty()) check(platform.transfer.origin, "transfer");
    if (platform.services.control_plane || platform.services.load_balancer) check(platform.services.origin, "services");
    for (const Instance& instance : platform.instances) {
      check(instance.origin, instance.name);
      if (instance.gpu_links) check(instance.gpu_links->origin, instance.name + " gpu_links");
      if (instance.host_link) check(instance.host_link->origin, instance.name + " host_link");
      if (instance.nic) check(instance.nic->origin, instance.name + " nic");
      for (const Price& price : instance.prices) check(price.origin, instance.name + " price");
    }
  }
}

TEST(Catalog, EveryPriceHasAKnownRegionADateAndAnAmount) {
  for (const std::string& provider : provider_names()) {
    const Platform& platform = catalog(provider);
    for (const Instance& instance : platform.instances) {
      EXPECT_EQ(instance.prices.empty(), instance.origin.notes == "no price was found") << instance.name;
      for (const Price& price : instance.prices) {
        EXPECT_NE(platform.region(price.region), nullptr) << instance.name << " " << price.region;
        EXPECT_GT(price.per_hour.value, 0) << instance.name;
        EXPECT_FALSE(price.as_of.empty()) << instance.name;
      }
    }
  }
}

TEST(Catalog, NoOtherMarketIsDearerThanOnDemand) {
  for (const std::string& provider : provider_names()) {
    for (const Instance& instance : catalog(provider).instances) {
      for (const Price& price : instance.prices) {
        const Price* list = find_price(instance, price.region, Market::on_demand);
        EXPECT_TRUE(list == nullptr || price.per_hour <= list->per_hour) << instance.name << " " << price.region;
      }
    }
  }
}

// AWS cut p4 and p5 in June 2025. A rate from before beside one from after would show a discount that nobody gets.
TEST(Catalog, HoldsNoRateFromBeforeTheCutOfJune2025) {
  for (const Instance& instance : catalog("aws").instances) {
    if (!instance.name.starts_with("p4") && !instance.name.starts_with("p5")) continue;
    for (const Price& price : instance.prices) {
      if (price.as_of == "undated") {
        EXPECT_THAT(price.origin.source, StartsWith("SKY-AWS")) << instance.name;  // after June 2025
      } else {
        EXPECT_GE(price.as_of, "2025-06-01") << instance.name << " " << price.region;
      }
    }
  }
}

TEST(Catalog, HasTheV100InstancesAtTheirListPrices) {
  const auto price = [](std::string_view provider, std::string_view instance, std::string_view region) {
    const Platform& platform = catalog(provider);
    return platform.price(platform.instance(instance), region, Market::on_demand).per_hour;
  };
  // AWS: 3.06 USD/h a GPU; Karpenter's price table of 2026-07-20.
  const MicroUsdPerHour gpu{3'060'000};
  EXPECT_EQ(price("aws", "p3.2xlarge", "us-east-1"), gpu);
  EXPECT_EQ(price("aws", "p3.8xlarge", "us-east-1"), 4 * gpu);
  EXPECT_EQ(price("aws", "p3.16xlarge", "us-east-1"), 8 * gpu);
  // Google: 0.38 USD/h for n1-standard-8 and 2.48 USD/h for each V100.
  EXPECT_EQ(price("gcp", "n1-standard-8+1xV100", "us-central1"), (MicroUsdPerHour{380'000 + 2'480'000}));
  EXPECT_EQ(price("gcp", "n1-standard-32+4xV100", "us-central1"), (MicroUsdPerHour{4 * (380'000 + 2'480'000)}));
  // Azure: as AWS, and a tenth more for InfiniBand.
  EXPECT_EQ(price("azure", "Standard_NC6s_v3", "eastus"), gpu);
  EXPECT_EQ(price("azure", "Standard_NC12s_v3", "eastus"), 2 * gpu);
  EXPECT_EQ(price("azure", "Standard_NC24s_v3", "eastus"), 4 * gpu);
  EXPECT_EQ(price("azure", "Standard_NC24rs_v3", "eastus"), (MicroUsdPerHour{13'460'000}));
}

TEST(Catalog, WiresTheV100Instances) {
  const Platform& aws = catalog("aws");
  // V100: NVLink at 20 GB/s a link and direction; 4 of 6 links reach the other three GPUs of a p3.8xlarge.
  EXPECT_EQ(aws.instance("p3.8xlarge").gpu_links->bandwidth, 4 * 20_GB_per_s);
  // p3.16xlarge: the hybrid cube mesh, six links a GPU.
  const GpuLinks& mesh = *aws.instance("p3.16xlarge").gpu_links;
  EXPECT_EQ(mesh.kind, GpuLinks::Kind::mesh);
  EXPECT_EQ(mesh.bandwidth, 20_GB_per_s);
  std::array<int, 8> links{};
  for (const MeshEdge& edge : mesh.mesh) {
    links[static_cast<std::size_t>(edge.a)] += edge.count;
    links[static_cast<std::size_t>(edge.b)] += edge.count;
  }
  for (const int count : links) EXPECT_EQ(count, 6);
  EXPECT_EQ(aws.instance("p3.2xlarge").nic->bandwidth, 2.5_Gbit_per_s);  // sustained, not the burst of 10
  EXPECT_FALSE(aws.instance("p3.2xlarge").nic->gpu_direct);              // TCP goes through the host
  EXPECT_EQ(catalog("azure").instance("Standard_NC24s_v3").gpu_links->kind, GpuLinks::Kind::pcie);
  EXPECT_EQ(catalog("azure").gpu_of(catalog("azure").instance("Standard_NC6s_v3")).family, "V100");
  const Instance& host = catalog("private").instance("v100-host");
  EXPECT_EQ(host.available, 4);
  EXPECT_EQ(host.nic->bandwidth, 10_Gbit_per_s);
}

TEST(Catalog, TcpHopsTakeWhatWasMeasured) {
  // nccl-tests between two one-GPU nodes over TCP: 98.8 us for 4 bytes = 6.6 us to start + 2 rounds of a ring.
  const Seconds hop = (98.8_us - 6.6_us) / 2;
  const Instance& node = catalog("aws").instance("p3.2xlarge");
  const Seconds modelled = 2 * node.nic->latency + 2 * node.host_link->latency + catalog("aws").fabric.latency;
  EXPECT_NEAR(modelled / hop, 1, 0.01);
}

TEST(LoadCatalog, TakesANameOrAPathBesideTheFileThatNamesIt) {
  const auto folder = std::filesystem::path(testing::TempDir()) / "load_catalog";
  std::filesystem::create_directories(folder / "labs");
  write_file(folder / "labs/mine.json", catalog_text("private"));
  EXPECT_EQ(load_catalog("aws", "nowhere").name, "aws");
  EXPECT_EQ(load_catalog("labs/mine.json", folder).name, "private");
  EXPECT_EQ(load_catalog((folder / "labs/mine.json").string(), "elsewhere").name, "private");
  std::filesystem::remove_all(folder);
}

TEST(LoadCatalog, AnUnknownNameGetsTheListAndTheNearest) {
  const JsonNode scenario = JsonNode::parse(R"({ "catalog": "asw" })", "scenario.json");
  const JsonNode at = scenario.child("catalog");
  try {
    load_catalog("azur", ".", &at);
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), AllOf(StartsWith("scenario.json: /catalog: there is no catalog \"azur\""),
                                    HasSubstr("did you mean \"azure\"?"), HasSubstr("\"private\"")));
  }
  EXPECT_THROW(load_catalog("missing.json", "."), ConfigError);
}

}  // namespace
}  // namespace ganymede
