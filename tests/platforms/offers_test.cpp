#include "platforms/offers.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "common/errors.hpp"
#include "common/json_value.hpp"
#include "platforms/catalog.hpp"
#include "platforms/gpu_names.hpp"
#include "support/errors.hpp"

namespace ganymede::platforms {
namespace {

using testing::HasSubstr;

const std::vector<Platform>& aws() {
  static const std::vector<Platform> platforms = {catalog("aws")};
  return platforms;
}

TEST(Offers, AreWhatWasAskedFor) {
  const OrderedJson rows = selected_offers(aws(), {.gpus = {"v100"}, .markets = {"spot"}}, "2026-11-20");
  ASSERT_FALSE(rows.empty());
  for (const OrderedJson& row : rows) {
    EXPECT_THAT(row["gpu"].get<std::string>(), HasSubstr("V100"));
    EXPECT_EQ(row["market"], "spot");
    EXPECT_DOUBLE_EQ(row["usd_per_gpu_hour"].get<double>() * row["gpus"].get<int>(),
                     row["usd_per_hour_number"].get<double>());
  }
}

TEST(Offers, KnowGpusAsPeopleNameThem) {
  for (const char* name : {"RTX 4090", "4090", "NVIDIA GeForce RTX 4090", "rtx-4090"})
    EXPECT_TRUE(is_gpu_name(name, "RTX4090")) << name;
  EXPECT_TRUE(is_gpu_name("Tesla V100", "V100"));
  EXPECT_TRUE(is_gpu_name("a100 80gb", "A100-80GB"));
  EXPECT_FALSE(is_gpu_name("A100", "A100-80GB"));
  EXPECT_FALSE(is_gpu_name("409", "RTX4090"));
  EXPECT_EQ(selected_offers(aws(), {.gpus = {"NVIDIA V100"}}, "2026-11-20"),
            selected_offers(aws(), {.gpus = {"V100"}}, "2026-11-20"));
}

// As nvidia-smi prints them.
TEST(Offers, KnowGpusAsDriversNameThem) {
  for (const auto& [name, gpu] : {std::pair{"NVIDIA A100-SXM4-80GB", "A100-80GB"},
                                  {"NVIDIA A100-SXM4-40GB", "A100-40GB"},
                                  {"Tesla V100-SXM2-16GB", "V100"},
                                  {"NVIDIA H100 80GB HBM3", "H100"}})
    for (const OrderedJson& row : selected_offers(aws(), {.gpus = {name}}, "2026-11-20")) {
      EXPECT_EQ(row["gpu"], gpu) << name;
    }
  EXPECT_EQ(gpus_named("NVIDIA H100 80GB HBM3", aws().front().gpus), std::vector<std::string>{"H100"});
  for (const char* name : {"NVIDIA Abacus", "A100-81"})
    EXPECT_THROW(selected_offers(aws(), {.gpus = {name}}, "2026-11-20"), ConfigError) << name;
  for (const Gpu& gpu : aws().front().gpus)
    EXPECT_EQ(gpu_likeness("nvidia-tesla-v100", gpu) > 0, gpu.family == "V100") << gpu.name;
}

TEST(Offers, DoNotTakeAMistypedGpuForTheNearest) {
  const auto known = [](const char* name) {
    return std::any_of(aws().front().gpus.begin(), aws().front().gpus.end(),
                       [&](const Gpu& gpu) { return gpu_likeness(name, gpu) > 0; });
  };
  for (const char* name :
       {"A100 SXM", "a100-80gb", "Tesla V100", "NVIDIA H100", "V100-32GB", "a100_80", "nvidia-h100-mega-80gb"})
    EXPECT_TRUE(known(name)) << name;
  for (const char* name : {"A100-90GB", "H100-PCE", "V100-64GB", "A100x", "T4 Ti", "NVIDIA Tesla T4 SUPER", "A100-81GB",
                           "A100 40GB Laptop GPU", "NVIDIA Tesla T4 D", "NVIDIA A100-SXM4-81GB"})
    EXPECT_FALSE(known(name)) << name;
  Gpu chip;
  chip.name = chip.family = "MI300X";
  EXPECT_GT(gpu_likeness("MI300", chip), 0);
  EXPECT_EQ(gpu_likeness("MI325", chip), 0);
  EXPECT_TRUE(gpu_by_sheet("A100-80GB"));
  for (const char* name : {"A100-81GB", "V100-32GB", "RTX 5090 Laptop"}) EXPECT_FALSE(gpu_by_sheet(name)) << name;
  EXPECT_EQ(did_you_mean_gpu("H100-PCE"), "; did you mean \"H100-PCIE\"?");
}

// The cheapest comes first, retired instances last.
TEST(Offers, AreSortedByThePriceOfAGpu) {
  const OrderedJson rows = selected_offers(aws(), {.sort = kByGpuHour}, "2026-11-20");
  double before = 0;
  for (const OrderedJson& row : rows) {
    if (!row["retired"].is_null() || row["usd_per_gpu_hour"].is_null()) break;
    EXPECT_GE(row["usd_per_gpu_hour"].get<double>(), before);
    before = row["usd_per_gpu_hour"].get<double>();
  }
  EXPECT_GT(before, 0);
}

TEST(Offers, OfAnUnknownNameAreRefusedWithTheNearest) {
  EXPECT_THAT(message_of<ConfigError>([] { selected_offers(aws(), {.regions = {"us-est-1"}}, "2026-11-20"); }),
              HasSubstr("did you mean \"us-east-1\"?"));
}

}  // namespace
}  // namespace ganymede::platforms
