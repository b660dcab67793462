#include "platforms/sky_platform.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "common/errors.hpp"
#include "common/json.hpp"
#include "platforms/platform.hpp"
#include "platforms/sky_catalogs.hpp"
#include "platforms/sky_gpus.hpp"
#include "support/errors.hpp"
#include "support/temporary_folder.hpp"

namespace ganymede::platforms {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

const std::string kHead =
    "InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,Price,Region,GpuInfo,SpotPrice,AvailabilityZone\n";

SkyPlatform made_of(const std::string& rows, const std::string& cloud = "nimbus", const std::string& head = kHead) {
  return platform_of_sky_list(CsvTable::parse(head + rows, "vms.csv"), {cloud, "2026-11-20"});
}

Platform platform_of(const std::string& rows, const std::string& cloud = "nimbus", const std::string& head = kHead) {
  return read_platform(JsonNode::parse(made_of(rows, cloud, head).text, "nimbus.json"));
}

std::string refusal(const std::string& rows, const std::string& head = kHead) {
  return message_of<ConfigError>([&] { made_of(rows, "nimbus", head); });
}

/// "big r1 on-demand 16.00" of each price.
std::vector<std::string> lines(const Platform& platform) {
  std::vector<std::string> all;
  for (const Instance& instance : platform.instances)
    for (const Price& price : instance.prices)
      all.push_back(instance.name + " " + (price.zone.empty() ? price.region : price.zone) + " " +
                    std::string(to_string(price.market)) + " " + decimal(price.per_hour));
  return all;
}

TEST(SkyPlatform, HasTheMachinesOfAnyCloud) {
  const Platform platform = platform_of(
      "big,H100,8.0,208.0,1800.0,16.005,r1,\"{'Gpus': [{'Name': 'H100', 'Manufacturer': null, 'Count': 8.0, "
      "'MemoryInfo': {'SizeInMiB': 81920}}], 'TotalGpuMemoryInMiB': 81920}\",,\n"
      "big,H100,8.0,208.0,1800.0,17,r2,,0.00,\n"
      "cpu,,,4,16,0.1,r1,,,\n");
  EXPECT_EQ(platform.provider, "nimbus");
  EXPECT_THAT(lines(platform), ElementsAre("big r1 on-demand 16.005", "big r2 on-demand 17.00"));
  const Instance& big = platform.instance("big");
  EXPECT_EQ(big.gpu, "H100");
  EXPECT_EQ(big.gpus, 8);
  EXPECT_EQ(big.vcpus, 208);
  EXPECT_EQ(big.memory->si, 1800.0 * 1073741824);
  EXPECT_EQ(big.prices.front().as_of, "2026-11-20");
  EXPECT_EQ(platform.gpu_of(big).memory.si, 80.0 * 1073741824);
  EXPECT_EQ(big.gpu_links->kind, GpuLinks::Kind::nvswitch);
  EXPECT_THAT(big.nic->origin.unconfirmed, HasSubstr("10 Gbit/s Ethernet is assumed"));
  EXPECT_EQ(platform.fabric_label(big, 2, 8), "assumed");
}

// A zone has a price of its own where zones differ; that of the region is the cheapest.
TEST(SkyPlatform, TakesTheCheapestZoneForTheRegion) {
  EXPECT_THAT(
      lines(platform_of("a,T4,1,4,16,1,r1,,0.5,z1\na,T4,1,4,16,1,r1,,0.4,z2\na,T4,1,4,16,,r2,,0.3,z3\n")),
      ElementsAre("a r1 on-demand 1.00", "a r1 spot 0.40", "a z1 spot 0.50", "a z2 spot 0.40", "a r2 spot 0.30"));
}

// 2 for a host that the A100s ask for and 10 for them. A V100 goes to the cheapest n1 with 8 vCPUs and four times as
// many GiB; spot is the sum of both, where both have one.
TEST(SkyPlatform, JoinsHostsAndAccelerators) {
  EXPECT_THAT(lines(platform_of(
                  "a2-highgpu-1g,,,12,85,2,r,,1,z\na2-highgpu-8g,,,96,680,9,r,,,z\na2-highgpu-1g,,,12,85,7,r,,,y\n"
                  ",A100,1.0,,,10,r,,3,z\nn1-standard-8,,,8,30,0.38,r,,0.08,z\nn1-highmem-8,,,8,52,0.47,r,,,z\n"
                  "n1-standard-16,,,16,60,0.76,r,,0.1,z\ne2-standard-16,,,16,64,0.1,r,,,z\n,V100,1.0,,,2.48,r,,0.7,z\n"
                  ",P4,3.0,,,1,r,,,z\n",
                  "nimbus")),
              ElementsAre("a2-highgpu-1g r on-demand 12.00", "a2-highgpu-1g r spot 4.00",
                          "n1-highmem-8+1xV100 r on-demand 2.95"));
}

// SkyPilot lists hosts of B200 at 0, because the GPUs' price has them; an n1 of 0 has no price. G4 takes RTX PRO 6000.
TEST(SkyPlatform, JoinsGooglesNewerHosts) {
  const std::string rows =
      "a4-highgpu-8g,,,224,3968,0,r,,0,z\n,B200,8,,,80,r,,30,z\ng4-standard-48,,,48,180,2,r,,1,z\n"
      ",RTXPRO6000,1,,,2.5,r,,1,z\na3-highgpu-8g,,,208,1872,8,r,,,z\n,H100,8,,,78,r,,,z\n"
      "n1-standard-32,,,32,240,0,r,,,z\nn1-standard-16,,,16,64,1,r,,,z\n,V100,1,,,2.48,r,,0,z\n";
  EXPECT_THAT(lines(platform_of(rows)),
              ElementsAre("a3-highgpu-8g r on-demand 86.00", "a4-highgpu-8g r on-demand 80.00",
                          "a4-highgpu-8g r spot 30.00", "g4-standard-48 r on-demand 4.50", "g4-standard-48 r spot 2.00",
                          "n1-standard-16+1xV100 r on-demand 3.48"));
  const SkyPlatform made = made_of(rows);
  EXPECT_THAT(made.remarks, testing::Contains(HasSubstr("leave out the local disks that always belong to "
                                                        "a3-highgpu-8g; Google bills them besides")));
  EXPECT_THAT(made.text, HasSubstr("the list's a3-highgpu-8g and 8 x H100 together, without its 6000 GiB of local"));
}

// A list may have no spot prices at all; one above that on demand is told.
TEST(SkyPlatform, SaysWhereSpotIsDearer) {
  EXPECT_THAT(
      lines(platform_of("a,T4,1,r,1\n", "nimbus", "InstanceType,AcceleratorName,AcceleratorCount,Region,Price\n")),
      ElementsAre("a r on-demand 1.00"));
  EXPECT_THAT(made_of("a,T4,1,4,16,1,r,,2,\nb,T4,1,4,16,1,r,,1,\n").remarks,
              testing::Contains("nimbus: spot above on demand in 1 row, first line 2: taken as they stand"));
}

// As a file that is read in pieces, and as a table.
TEST(SkyPlatform, OfAFileIsTheSame) {
  const TemporaryFolder folder;
  const std::string rows = "a,T4,1,4,16,1,r,,0.5,z1\nb,L4,1,4,16,2,r,,,z1\n";
  const SkyPlatform loaded = load_sky_list(folder.add("vms.csv", kHead + rows), {"nimbus", "2026-11-20"});
  EXPECT_EQ(loaded.text, made_of(rows).text);
  EXPECT_EQ(loaded.remarks, made_of(rows).remarks);
}

TEST(SkyPlatform, KnowsGpusByAllTheirNames) {
  const auto name = [](std::string_view accelerator, std::string_view info = "", std::string_view instance = "",
                       std::string_view cloud = "nimbus", double count = 1) {
    return gpu_of({cloud, accelerator, info, count, names_a_card(instance)}).name;
  };
  EXPECT_EQ(name("A100"), "A100-40GB");
  EXPECT_EQ(name("A100-80GB"), "A100-80GB");
  EXPECT_EQ(name("A100", "{'SizeInMiB': 81920}"), "A100-80GB");
  EXPECT_EQ(name("A100", "", "1x-A100_PCIE-32-65536"), "A100-40GB-PCIE");
  EXPECT_EQ(name("A100-80G-PCIe-NVLink"), "A100-80GB-PCIE");
  EXPECT_EQ(name("H100-80G-SXM5"), "H100");
  EXPECT_EQ(name("H100", "{\"Name\": \"NVIDIA H100 PCIe\", \"SizeInMiB\": 81559}"), "H100-PCIE");
  EXPECT_EQ(name("H100-MEGA"), "H100");
  EXPECT_EQ(name("H100-80GB-HBM3", "", "", "runpod"), "H100");
  EXPECT_EQ(name("H100", "", "", "runpod"), "H100-PCIE");
  EXPECT_EQ(name("H100", "{'SizeInMiB': 191660}", "2x-H100_NVL", "vast", 2), "H100-NVL");
  EXPECT_EQ(name("V100", "{'SizeInMiB': 16384}", "", "nimbus", 8), "V100");
  EXPECT_EQ(name("V100-32GB", "V100-32GB"), "V100-32GB");
  EXPECT_EQ(name("RTX-A4000"), "RTXA4000");
  EXPECT_EQ(name("A6000"), "RTXA6000");
  EXPECT_EQ(name("RTX6000-Ada"), "RTX6000Ada");
  EXPECT_EQ(name("RTX-PRO-6000"), "RTXPRO6000");
  EXPECT_EQ(name("RTX 3070", "{'gpus': [{'memoryinfo': {'sizeinmib': 8192}}]}"), "RTX3070");
  EXPECT_EQ(name("MI300X"), "MI300X");
  EXPECT_EQ(name("GB300"), "GB300");
  EXPECT_EQ(name("A10G"), "A10G");
  // Shadeform's list has GiB where MiB should stand; that of Prime Intellect counts all GPUs of a machine.
  EXPECT_EQ(name("A6000", "{'SizeInMiB': 48}", "", "shadeform", 8), "RTXA6000");
  EXPECT_EQ(name("A100", "{'SizeInMiB': 40}", "", "shadeform", 8), "A100-40GB");
  EXPECT_EQ(name("V100", "{'SizeInMiB': 16}", "", "shadeform"), "V100");
  EXPECT_EQ(name("H100", "{\"SizeInMiB\":655360}", "", "primeintellect", 8), "H100");
  EXPECT_EQ(name("A100", "{\"SizeInMiB\":81920}", "", "primeintellect", 2), "A100-40GB");
  EXPECT_EQ(name("A100_80G_SXM4"), "A100-80GB");
  EXPECT_EQ(name("RTX5090_PCIE_BAREMETAL", "{\"SizeInMiB\": 32768}"), "RTX5090");
  EXPECT_EQ(name("RTX PRO 6000 96GB", "{'SizeInMiB': 0}"), "RTXPRO6000");
  EXPECT_EQ(name("Radeon Pro V520", "{'SizeInMiB': 8192}"), "V520");
  EXPECT_EQ(name("Radeon MI25", "{'SizeInMiB': 16384}"), "MI25");
  EXPECT_EQ(name("RTXA2000", "{'SizeInMiB': 6144}"), "RTXA2000");
  EXPECT_EQ(name("A10", "", "", "azure", 0.167), "A10-1of6");
  EXPECT_EQ(name("Gaudi HL-205"), "Gaudi");
  EXPECT_EQ(name("HL-225"), "Gaudi2");
  EXPECT_EQ(name("Trainium2"), "Trainium2");
  EXPECT_EQ(name("Trainium3"), "");
  EXPECT_EQ(name("Inferentia"), "Inferentia");
  EXPECT_EQ(name("Inferentia2"), "Inferentia2");
}

TEST(SkyPlatform, SaysOnceWhichGpusHaveNoDataSheet) {
  const SkyPlatform made =
      made_of("a,T4,1,4,16,1,r,,,\nb,AI100,8,4,16,1,r,,,\nb,AI100,8,4,16,1,s,,,\nc,,,4,16,1,r,,,\n");
  EXPECT_THAT(
      made.remarks,
      ElementsAre(
          "nimbus: 1 instance type with accelerators, 1 price of 2026-11-20",
          "nimbus: left out, without a data sheet of their rates and memory bandwidth: AI100 (2 rows, first line 3)",
          "nimbus: left out: 1 row of machines without accelerators"));
  EXPECT_THAT(refusal("b,AI100,8,4,16,1,r,,,\n"),
              HasSubstr("without a price of a machine with accelerators; nimbus: left out"));
}

// Chips that are no GPUs are machines of their own kind, with what is not known of them.
TEST(SkyPlatform, HasTrainingChips) {
  const Platform platform = platform_of("trn1.32xlarge,Trainium,16,128,512,21.5,us-east-1,,7.0,\n");
  const Gpu& gpu = platform.gpu_of(platform.instance("trn1.32xlarge"));
  EXPECT_EQ(gpu.kind, Gpu::Kind::tpu);
  EXPECT_EQ(gpu.fp32.si, 47.5e12);
  EXPECT_EQ(gpu.tensor->si, 190e12);
  EXPECT_EQ(gpu.memory.si, 32.0 * 1073741824);
  EXPECT_FALSE(gpu.peak);
  EXPECT_THAT(gpu.origin.unconfirmed, HasSubstr("it runs no CUDA program"));
  EXPECT_THAT(gpu.origin.unconfirmed, Not(HasSubstr("inference")));
  const Platform inference = platform_of("inf1.2xlarge,Inferentia,1,8,16,0.36,us-east-1,,0.1,\n");
  const Gpu& chip = inference.gpu_of(inference.instance("inf1.2xlarge"));
  EXPECT_EQ(chip.tensor->si, 64e12);
  EXPECT_THAT(chip.origin.unconfirmed, HasSubstr("made for inference"));
  EXPECT_THAT(chip.origin.unconfirmed, HasSubstr("a quarter of 16 bits"));
}

// A region that the list leaves open, regions with commas, and one type with two kinds of GPU.
TEST(SkyPlatform, TakesWhatListsHold) {
  EXPECT_THAT(
      lines(platform_of("a,T4,1,4,16,1,\", US, NA\",,,\nb,T4,1,4,16,2,,,,\nb,L4,1,4,16,3,,,,\nc,T4,0.5,4,16,1,r,,,\n"
                        "d,AMD-MI300X,8,4,16,9,r,,,\n")),
      ElementsAre("a US, NA on-demand 1.00", "b any on-demand 2.00", "b+1xL4 any on-demand 3.00", "c r on-demand 1.00",
                  "d r on-demand 9.00"));
}

TEST(SkyPlatform, TakesWhatTheCatalogOfTheCloudKnows) {
  const Platform gcp = platform_of(
      ",tpu-v3-8,1.0,,,8,us-central1,,2.4,us-central1-a\na2-highgpu-8g,,,96,680,5,us-central1,,,us-central1-a\n"
      ",A100,8.0,,,20,us-central1,,,us-central1-a\n,tpu-v99-8,1.0,,,8,us-central1,,2.4,us-central1-a\n",
      "gcp");
  EXPECT_THAT(lines(gcp), ElementsAre("a2-highgpu-8g us-central1 on-demand 25.00",
                                      "tpu-v3-8 us-central1 on-demand 8.00", "tpu-v3-8 us-central1 spot 2.40"));
  EXPECT_EQ(gcp.instance("tpu-v3-8").gpus, 4);
  EXPECT_TRUE(gcp.instance("a2-highgpu-8g").nic->origin.unconfirmed.find("Ethernet is assumed") == std::string::npos);
  EXPECT_FALSE(gcp.storage.empty());
}

TEST(SkyPlatform, RefusesListsThatAreWrong) {
  EXPECT_THAT(refusal("a,T4,1,4,16,-1,r,,,\n"),
              HasSubstr("vms.csv: line 2: Price: found \"-1\", expected a number from 0"));
  EXPECT_THAT(refusal("a,T4,1,4,16,nan,r,,,\n"), HasSubstr("line 2: Price: found \"nan\""));
  EXPECT_THAT(refusal("a,T4,1,4,16,1,r,,cheap,\n"), HasSubstr("line 2: SpotPrice: found \"cheap\""));
  EXPECT_THAT(refusal("a,T4,2,4,16,1e6,r,,,\n"), HasSubstr("line 2: found 1e+06 USD/h for 2 devices of a"));
  EXPECT_THAT(refusal("a,T4,1,4,16,1,r,,,\na,T4,1,4,16,1,r,,,\na,T4,1,4,16,2,r,,,\n"),
              HasSubstr("line 4: a second on-demand price of a in r: 2 here, 1 in line 2"));
  EXPECT_THAT(refusal("a,T4,0,4,16,1,r,,,\n"),
              HasSubstr("line 2: AcceleratorCount: found \"0\", expected a number of T4"));
  for (const char* count : {"1e9", "1e-7"})
    EXPECT_THAT(refusal(std::string("a,T4,") + count + ",4,16,1,r,,,\n"), HasSubstr("line 2: AcceleratorCount: found"));
  EXPECT_THAT(refusal("a,T4,1,1e30,16,1,r,,,\n"), HasSubstr("line 2: vCPUs: found \"1e30\""));
  EXPECT_THAT(refusal("a,T4,two,4,16,1,r,,,\n"), HasSubstr("line 2: AcceleratorCount: found \"two\""));
  EXPECT_THAT(refusal("a,T4,1,4,16,1,r,,,\n" + kHead), HasSubstr("line 3: a second line of column names"));
  EXPECT_THAT(refusal(",,1,4,16,1,r,,,\n"), HasSubstr("line 2: names neither an InstanceType nor an AcceleratorName"));
  EXPECT_THAT(refusal("a,T4,1,r,1\n", "InstanceType,AcceleratorName,AcceleratorCount,Region,SpotPrice\n"),
              HasSubstr("line 1: there is no column \"Price\""));
  EXPECT_THAT(refusal("a,T4\n"), HasSubstr("line 2: found 2 cells, expected 10"));
}

const std::string kRow = "a,T4,1,4,16,1,r,,,\n";

std::vector<std::string> names_of(const SkyPlatforms& made) {
  std::vector<std::string> names;
  for (const auto& file : made.files) names.push_back(file.name);
  return names;
}

TEST(SkyCatalogs, AreThoseOfTheNewestVersion) {
  const TemporaryFolder folder;
  folder.add("v8/nimbus/vms.csv", kHead + kRow);
  folder.add("v10/cirrus/vms.csv", kHead + kRow);
  folder.add("v10/cumulus/vms.csv", kHead + kRow);
  folder.add("v10/common/metadata.csv", "x\n");
  const SkyPlatforms all = platforms_of_sky({folder.path(), {}, "2026-11-20", "2026-11-21"});
  EXPECT_THAT(names_of(all), ElementsAre("cirrus", "cumulus"));
  EXPECT_THAT(all.remarks, testing::Contains(HasSubstr("nimbus has no list in v10, the newest; --from-skypilot ")));
  EXPECT_THAT(names_of(platforms_of_sky({folder.path(), {"cumulus"}, "2026-11-20", "2026-11-21"})),
              ElementsAre("cumulus"));
  EXPECT_THAT(names_of(platforms_of_sky({folder / "v8", {}, "2026-11-20", "2026-11-21"})), ElementsAre("nimbus"));
  EXPECT_THAT(names_of(platforms_of_sky({folder / "v8/nimbus/vms.csv", {}, "2026-11-20", "2026-11-21"})),
              ElementsAre("nimbus"));
  EXPECT_THAT(message_of<ConfigError>([&] {
                platforms_of_sky({folder.path(), {"cumulos"}, "", "2026-11-21"});
              }),
              HasSubstr("--cloud cumulos: "));
  EXPECT_THAT(message_of<ConfigError>([&] {
                platforms_of_sky({folder / "v9", {}, "", "2026-11-21"});
              }),
              HasSubstr("found no CLOUD/vms.csv there"));
  // The files were written now, which is after that day.
  EXPECT_THAT(message_of<ConfigError>([&] {
                platforms_of_sky({folder.path(), {}, "", "2020-01-01"});
              }),
              HasSubstr("which is in the future (today is 2020-01-01)"));
}

}  // namespace
}  // namespace ganymede::platforms
