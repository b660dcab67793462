#include "platforms/catalog.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>

#include "common/errors.hpp"
#include "common/file.hpp"
#include "common/json.hpp"
#include "common/units.hpp"
#include "platforms/catalog_lists.hpp"

namespace ganymede::platforms {
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
        // Nobody rents out what stands under a desk: its time costs electricity alone.
        if (provider == "local") {
          EXPECT_EQ(price.per_hour.value, 0) << instance.name;
        } else {
          EXPECT_GT(price.per_hour.value, 0) << instance.name;
        }
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

TEST(Catalog, HasTheCloudsWherePeopleRent) {
  const auto price = [](std::string_view provider, std::string_view instance, std::string_view region, Market market) {
    const Platform& platform = catalog(provider);
    return decimal(platform.price(platform.instance(instance), region, market).per_hour);
  };
  // The price pages of 2026-09-20, 2026-11-09, 2026-05-29 and 2026-08-26, times the GPUs; spot is 0.8 of on-demand.
  EXPECT_EQ(price("lambda", "gpu_8x_h100_sxm5", "us-east-1", Market::on_demand), "31.92");
  EXPECT_EQ(price("runpod", "1x_H100-SXM_COMMUNITY", "US", Market::on_demand), "2.69");
  EXPECT_EQ(price("runpod", "1x_H100-SXM_SECURE", "US", Market::on_demand), "3.99");
  EXPECT_EQ(price("digitalocean", "gpu-mi300x8-1536gb", "any", Market::on_demand), "15.92");
  EXPECT_EQ(price("hyperstack", "n3-H100x8", "CANADA-1", Market::spot), "16.00");
  EXPECT_EQ(catalog("coreweave").instance("hgx-h200-8").nic->bandwidth, 400_Gbit_per_s);
  EXPECT_EQ(catalog("digitalocean").instance("gpu-mi300x8-1536gb").gpu_links->kind, GpuLinks::Kind::mesh);
  // What nothing joins has no adapter; where no source tells what does, it is assumed.
  for (const char* alone : {"runpod", "vast"})
    for (const Instance& instance : catalog(alone).instances) EXPECT_FALSE(instance.nic) << instance.name;
  EXPECT_EQ(catalog("lambda").instance("gpu_8x_h100_sxm5").nic->label, "assumed");
}

TEST(Catalog, WiresTheV100Instances) {
  const Platform& aws = catalog("aws");
  // V100: NVLink at 20 GB/s a link and direction; 4 of 6 links reach the other three GPUs of a p3.8xlarge.
  EXPECT_EQ(aws.instance("p3.8xlarge").gpu_links->bandwidth, 4 * 20_GB_per_s);
  // p3.16xlarge: the hybrid cube mesh, six links a GPU, at the rate that vTrain measured.
  const GpuLinks& mesh = *aws.instance("p3.16xlarge").gpu_links;
  EXPECT_EQ(mesh.kind, GpuLinks::Kind::mesh);
  EXPECT_EQ(mesh.bandwidth, 22.5_GB_per_s);
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

// The kernel model and the catalog must mean the same card.
TEST(Catalog, HasConsumerCardsThatCostElectricityAlone) {
  const Platform& local = catalog("local");
  EXPECT_GT(local.region("home")->per_kwh->value, 0);
  for (const Gpu& gpu : local.gpus) {
    EXPECT_TRUE(gpu.peak) << gpu.name << ": electricity needs its power";
    for (const std::string& name : {gpu.name, gpu.name + "x2", gpu.name + "x4"})
      EXPECT_EQ(local.instance(name).gpu, gpu.name);
  }
  EXPECT_EQ(local.instance("RTX3090x2").gpus, 2);
  EXPECT_FALSE(local.instance("RTX3090x2").gpu_links) << "messages go through the host's memory";
}

TEST(Catalog, TcpHopsTakeWhatWasMeasured) {
  // nccl-tests between two one-GPU nodes over TCP: 98.8 us for 4 bytes = 6.6 us to start + 2 rounds of a ring.
  const Seconds hop = (98.8_us - 6.6_us) / 2;
  const Instance& node = catalog("aws").instance("p3.2xlarge");
  const Seconds modelled = 2 * node.nic->latency + 2 * node.host_link->latency + catalog("aws").fabric.latency;
  EXPECT_NEAR(modelled / hop, 1, 0.01);
}

// A NIC that is laid over with "transport": "tcp" must not lose its limits.
TEST(Catalog, StatesWhatTcpReachesOnEveryNic) {
  for (const char* name : {"aws", "azure", "gcp", "ibm", "local", "private"})
    for (const Instance& instance : catalog(name).instances) {
      if (!instance.nic) continue;
      ASSERT_TRUE(instance.nic->tcp) << instance.name;
      EXPECT_EQ(instance.nic->tcp->per_flow.has_value(), std::string_view(name) == "aws") << instance.name;
    }
}

// One adapter a GPU, four for each, one for two.
TEST(Catalog, CountsTheAdaptersOfANode) {
  const auto adapters = [](const char* name, const char* instance) {
    const Nic& nic = *catalog(name).instance(instance).nic;
    return std::pair(nic.count, nic.count * nic.bandwidth);
  };
  EXPECT_EQ(adapters("aws", "p4d.24xlarge"), std::pair(4, 400_Gbit_per_s));
  EXPECT_EQ(adapters("aws", "p5.48xlarge"), std::pair(32, 3200_Gbit_per_s));
  EXPECT_EQ(adapters("aws", "p5en.48xlarge"), std::pair(16, 3200_Gbit_per_s));
  EXPECT_EQ(adapters("aws", "p6-b200.48xlarge"), std::pair(8, 3200_Gbit_per_s));
  EXPECT_EQ(adapters("azure", "Standard_ND96asr_v4"), std::pair(8, 1600_Gbit_per_s));
  EXPECT_EQ(adapters("azure", "Standard_ND96isr_H200_v5"), std::pair(8, 3200_Gbit_per_s));
  EXPECT_EQ(adapters("gcp", "a3-megagpu-8g"), std::pair(8, 1600_Gbit_per_s));
  EXPECT_EQ(adapters("gcp", "a3-ultragpu-8g"), std::pair(8, 3200_Gbit_per_s));
}

constexpr double kGib = 1073741824;

// Providers write GB and mean 2^30 bytes where they sell storage: 500 GiB of gp3 in Ireland are 44 USD a month.
TEST(Catalog, SellsStorageByTheGib) {
  for (const char* provider : {"aws", "gcp", "azure"}) {
    const Platform platform = load_catalog(provider, "");
    for (const Storage& storage : platform.storage) {
      EXPECT_EQ(storage.rates.unit, VolumeUnit::gib) << storage.name;
      for (const auto& [region, rates] : storage.regions) EXPECT_EQ(rates.unit, VolumeUnit::gib) << storage.name;
      EXPECT_TRUE(storage.each_node) << storage.name;
    }
  }
  const Platform aws = load_catalog("aws", "");
  EXPECT_EQ(aws.storage_class("gp3").rates_in("eu-west-1").per_month, MicroUsd{88'000});
  EXPECT_EQ(aws.storage_class("gp3").rates_in("eu-west-1").per_rate_month, MicroUsd{44'000});
  EXPECT_TRUE(aws.storage_class("gp3").rates_in("eu-west-1").rate_in_mib);
}

// A P30 is a whole disk of 1024 GiB for 135.17 USD a month, however little of it is used.
TEST(Catalog, SellsAzuresDisksWhole) {
  const Platform azure = load_catalog("azure", "");
  for (const auto& [name, gib, usd] : {std::tuple{"premium-ssd-p10", 128, 19.71},
                                       {"premium-ssd-p20", 512, 73.22},
                                       {"premium-ssd-p30", 1024, 135.17},
                                       {"premium-ssd-p40", 2048, 259.05}}) {
    const Storage& disk = azure.storage_class(name);
    EXPECT_EQ(disk.sold(Bytes{1}).si, gib * kGib) << name;
    EXPECT_EQ(disk.maximum->si, gib * kGib) << name;
    EXPECT_NEAR(static_cast<double>(disk.rates.per_month->value) * 1e-6 * gib, usd, 0.005) << name;
  }
}

// 10 GiB at 0.12 MiB/s each are 1.258 MB/s; above 10,000 GiB the instance's 1,200 MiB/s limit what is read, above 3,333
// its 400 what is written. gp2 has 3 IOPS a GiB from 100 to 16,000.
TEST(Catalog, KnowsHowFastAVolumeIsByItsSize) {
  const auto sized = [](Storage storage, double gib) {
    storage.set_size(Bytes{gib * kGib});
    return storage;
  };
  const Platform gcp = load_catalog("gcp", "");
  const Storage& standard = gcp.storage_class("pd-standard");
  EXPECT_EQ(standard.sold(Bytes{10e9}).si, 10 * kGib);
  EXPECT_NEAR(sized(standard, 10).read.si, 1.258e6, 0.001e6);
  EXPECT_DOUBLE_EQ(*sized(standard, 10).iops, 7.5);
  EXPECT_DOUBLE_EQ(sized(standard, 20'000).read.si, 1200 * 1048576.0);
  EXPECT_DOUBLE_EQ(sized(standard, 20'000).write.si, 400 * 1048576.0);
  const Platform aws = load_catalog("aws", "");
  const Storage& gp2 = aws.storage_class("gp2");
  EXPECT_EQ(sized(gp2, 8).iops, 100);
  EXPECT_EQ(sized(gp2, 8).burst_iops, 3000);
  EXPECT_EQ(sized(gp2, 2000).iops, 6000);
  EXPECT_FALSE(sized(gp2, 2000).burst_iops);  // nothing to burst to
  EXPECT_EQ(sized(gp2, 16'384).iops, 16'000);
}

TEST(Catalog, KnowsWhatCanBeProvisioned) {
  const Platform aws = load_catalog("aws", "");
  const VolumeLimits& gp3 = aws.storage_class("gp3").limits;
  EXPECT_EQ(gp3.iops, 16'000);
  EXPECT_EQ(gp3.iops_per_gib, 500);
  EXPECT_EQ(gp3.throughput->si, 1000 * 1048576.0);
  EXPECT_EQ(gp3.per_iops->si, 0.25 * 1048576);
  EXPECT_EQ(aws.storage_class("io1").limits.iops, 64'000);
  EXPECT_EQ(aws.storage_class("io2").limits.iops, 256'000);
  EXPECT_EQ(aws.storage_class("io2").limits.iops_per_gib, 1000);
}

// AWS charges both zones for what crosses between them, Google the one that sends; Google sells egress by the GiB.
TEST(Catalog, KnowsWhoPaysForTraffic) {
  EXPECT_TRUE(load_catalog("aws", "").transfer.zone_charged_at_both_ends);
  EXPECT_FALSE(load_catalog("gcp", "").transfer.zone_charged_at_both_ends);
  EXPECT_EQ(load_catalog("aws", "").transfer.internet_unit, VolumeUnit::gb);
  EXPECT_EQ(load_catalog("gcp", "").transfer.internet_unit, VolumeUnit::gib);
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

TEST(OwnMachines, AreBuiltLikeAnInstanceTypeAndCostAPlaceholder) {
  const std::string file = machines_like("p3.8xlarge");
  EXPECT_THAT(file,
              AllOf(StartsWith("// Machines of your own that are built like p3.8xlarge"), HasSubstr("placeholder")));
  const Platform own = read_platform(JsonNode::parse(file, "own.json"));
  ASSERT_EQ(own.instances.size(), 1U);
  const auto& all = catalog("aws").instances;
  const auto like = std::find_if(all.begin(), all.end(), [](const Instance& one) { return one.name == "p3.8xlarge"; });
  ASSERT_NE(like, all.end());
  EXPECT_EQ(own.instances.front().gpu, like->gpu);
  EXPECT_EQ(own.instances.front().gpus, like->gpus);
  EXPECT_EQ(own.instances.front().prices.size(), 1U);
  EXPECT_THAT([] { machines_like("p3.9xlarge"); },
              testing::ThrowsMessage<ConfigError>(HasSubstr("did you mean \"p3.2xlarge\"?")));
}

}  // namespace
}  // namespace ganymede::platforms
