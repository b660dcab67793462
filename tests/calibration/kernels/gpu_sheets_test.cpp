#include "calibration/kernels/gpu_sheets.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "common/embedded.hpp"
#include "common/errors.hpp"
#include "common/json.hpp"
#include "common/json_value.hpp"

namespace ganymede::calibration {
namespace {

std::string sheet_named(std::string_view name) {
  const GpuSheet* sheet = find_gpu_sheet(name);
  return sheet ? sheet->name : "none";
}

TEST(GpuSheets, AreFoundByTheNamesOfMeasurementsAndDrivers) {
  EXPECT_EQ(sheet_named("P100-PCIE-16GB"), "P100");
  EXPECT_EQ(sheet_named("V100-PCIE-32GB"), "V100-PCIE");
  EXPECT_EQ(sheet_named("V100-SXM2 (DGX-1)"), "V100");
  EXPECT_EQ(sheet_named("Tesla T4"), "T4");
  EXPECT_EQ(sheet_named("GTX 1080 Ti"), "GTX1080Ti");
  EXPECT_EQ(sheet_named("NVIDIA A100-SXM4-40GB"), "A100-40GB");
  EXPECT_EQ(sheet_named("A100-PCIE-80GB"), "A100-80GB-PCIE");
  EXPECT_EQ(sheet_named("A100-PCIE-40GB"), "A100-40GB-PCIE");
  EXPECT_EQ(sheet_named("NVIDIA H100 80GB HBM3"), "H100");
  EXPECT_EQ(sheet_named("H100-80GB-HBM3"), "H100");
  EXPECT_EQ(sheet_named("NVIDIA RTX 6000 Ada Generation"), "RTX6000Ada");
  EXPECT_EQ(sheet_named("Quadro RTX 6000"), "RTX6000");
  EXPECT_EQ(sheet_named("NVIDIA GeForce RTX 3080 Ti"), "RTX3080Ti");
  EXPECT_EQ(sheet_named("NVIDIA RTX PRO 6000 Blackwell Server Edition"), "RTXPRO6000");
  EXPECT_EQ(sheet_named("AMD Instinct MI300X"), "MI300X");
  EXPECT_EQ(sheet_named("NVIDIA RTX A4000"), "RTXA4000");
  EXPECT_EQ(sheet_named("NVIDIA H100 80GB HBM3 MIG 1g.10gb"), "none");
  EXPECT_EQ(sheet_named("NVIDIA T400 4GB"), "none");
  EXPECT_EQ(sheet_named("A1"), "none");
  EXPECT_EQ(sheet_named("A1000"), "none");
}

TEST(GpuSheets, KnowEveryGpuOfTheCatalogs) {
  std::set<std::string> missing;
  for (const EmbeddedText& catalog : embedded_catalogs()) {
    const JsonNode node = JsonNode::parse(catalog.text, std::string(catalog.name));
    if (!node.value().contains("gpus")) continue;
    for (const auto& [name, gpu] : node.value()["gpus"].items()) {
      if (gpu.value("kind", "gpu") == "gpu" && !find_gpu_sheet(name)) missing.insert(name);
    }
  }
  EXPECT_THAT(missing, ::testing::IsEmpty());
}

TEST(GpuSheets, RatesAreThoseOfTheDataSheets) {
  // Peak 32-bit rates in TFLOP/s as the data sheets print them.
  EXPECT_NEAR(find_gpu_sheet("V100")->fp32_flops() / 1e12, 15.7, 0.05);
  EXPECT_NEAR(find_gpu_sheet("P100")->fp32_flops() / 1e12, 9.526, 0.05);
  EXPECT_NEAR(find_gpu_sheet("T4")->fp32_flops() / 1e12, 8.1, 0.05);
  EXPECT_NEAR(find_gpu_sheet("H100")->fp32_flops() / 1e12, 67, 0.5);
  EXPECT_NEAR(find_gpu_sheet("L4")->fp32_flops() / 1e12, 30.3, 0.1);
  EXPECT_NEAR(find_gpu_sheet("A10G")->fp32_flops() / 1e12, 31.52, 0.1);
  EXPECT_NEAR(find_gpu_sheet("RTXA4000")->fp32_flops() / 1e12, 19.2, 0.05);
  EXPECT_NEAR(find_gpu_sheet("RTX5000Ada")->fp32_flops() / 1e12, 65.3, 0.05);
  EXPECT_NEAR(find_gpu_sheet("MI300X")->fp32_flops() / 1e12, 163.4, 0.05);
  EXPECT_NEAR(find_gpu_sheet("MI355X")->fp32_flops() / 1e12, 157.3, 0.05);
  for (const GpuSheet& sheet : gpu_sheets()) EXPECT_GT(sheet.memory_bytes, 0) << sheet.name;
}

TEST(GpuSheets, AGpuWithoutMultiprocessorsIsRefused) {
  GpuSheet sheet = *find_gpu_sheet("T4");
  sheet.multiprocessors = 0;
  EXPECT_THAT([&] { check_gpu_sheet(sheet, "mine.json: /gpus/X"); },
              ::testing::ThrowsMessage<ConfigError>(
                  ::testing::HasSubstr("mine.json: /gpus/X: multiprocessors: found 0, expected")));
}

}  // namespace
}  // namespace ganymede::calibration
