// Where a recipe's step was measured it is the step; the model of kernel times carries it to others.

#include "calibration/recipe_steps.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <sstream>

#include "calibration/device_memory.hpp"
#include "calibration/workload_model.hpp"
#include "common/json.hpp"
#include "common/json_value.hpp"
#include "support/temporary_folder.hpp"
#include "traces/recipe.hpp"
#include "traces/recorded.hpp"

namespace ganymede::calibration {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

traces::StepTrace trace_of(const std::string& recipe) {
  const std::string name = "recipe:" + recipe;
  return traces::read_step_trace(
      JsonNode::parse(traces::trace_text(JsonNode::wrap(Json(name), "scenario.json", "")), name));
}

/// The model of a pass of so many images of a recipe on a GPU.
WorkloadModel pass_of(const std::string& recipe, int images, const std::string& gpu_name) {
  const traces::StepTrace trace = trace_of(recipe);
  const GpuSheet& sheet = *find_gpu_sheet(gpu_name);
  platforms::Gpu gpu;
  gpu.name = gpu.family = gpu_name;
  gpu.fp32 = FlopsPerSecond{sheet.fp32_flops()};
  gpu.memory_bandwidth = BytesPerSecond{sheet.memory_bandwidth};
  return workload_on(trace, *trace.find_batch(images), gpu, nullptr);
}

// NVlabs/stylegan2-ada-pytorch, README.md: 72.5 to 74.9 s for 1,000 images of 512 pixels on one V100, eight a pass.
TEST(RecipeSteps, WhatWasMeasuredIsTheStep) {
  const WorkloadModel step = pass_of("stylegan2-ada?image=512", 8, "V100");
  EXPECT_NEAR(step.central.mean_s(), 73.7 * 8 / 1000, 1e-6);
  EXPECT_EQ(step.provenance, Provenance::measured);
  EXPECT_THAT(step.rule, AllOf(HasSubstr("measured: NVIDIA, 2020, on V100"), HasSubstr("8 images of 512 pixels")));
  EXPECT_DOUBLE_EQ(step.low.mean_s(), step.high.mean_s());
}

TEST(RecipeSteps, AreCarriedToOtherBatchesConfigurationsAndGpus) {
  const double of_eight = pass_of("stylegan2-ada?image=512", 8, "V100").central.mean_s();
  const WorkloadModel of_four = pass_of("stylegan2-ada?image=512", 4, "V100");
  EXPECT_EQ(of_four.provenance, Provenance::transferred);
  EXPECT_THAT(of_four.rule, HasSubstr("carried to 4 images on V100"));
  EXPECT_GT(of_four.central.mean_s(), of_eight / 2.2);  // half the work, or somewhat more
  EXPECT_LT(of_four.central.mean_s(), of_eight / 1.5);
  // Six layers more of a mapping of 512 numbers hardly count.
  EXPECT_NEAR(pass_of("stylegan2-ada/paper512", 8, "V100").central.mean_s() / of_eight, 1, 0.02);
  // In fp32 it is longer, and on an A100 shorter.
  EXPECT_GT(pass_of("stylegan2-ada?image=512&precision=fp32", 8, "V100").central.mean_s(), 1.2 * of_eight);
  EXPECT_THAT(pass_of("stylegan2-ada?image=512", 8, "A100-40GB").rule, HasSubstr("carried"));
  EXPECT_LT(pass_of("stylegan2-ada?image=512", 8, "A100-40GB").central.mean_s(), 0.8 * of_eight);
}

// By kernels alone steps of publications that were left out are 0.7 to 1.4 times as long as predicted.
TEST(RecipeSteps, ThatNobodyHasMeasuredHaveAWideInterval) {
  const WorkloadModel step = pass_of("sngan", 64, "V100");
  EXPECT_EQ(step.provenance, Provenance::kernel_model);
  EXPECT_GE(step.high.mean_s() / step.central.mean_s(), 1.45);
  EXPECT_LE(step.low.mean_s() / step.central.mean_s(), 1 / 1.45);
}

TEST(RecipeSteps, OfTheNearestGpuAreTaken) {
  const auto from = [](const char* gpu) { return recipe_anchor("stylegan3-t", *find_gpu_sheet(gpu), 4)->text; };
  EXPECT_THAT(from("V100"), HasSubstr("on V100:"));
  EXPECT_THAT(from("A100-80GB"), HasSubstr("on A100-40GB:"));
  EXPECT_THAT(from("T4"), HasSubstr("on V100:"));
  EXPECT_THAT(from("H100"), HasSubstr("on A100-40GB:"));
  EXPECT_THAT(recipe_anchor("cyclegan", *find_gpu_sheet("H100"), 1)->text, HasSubstr("on V100:"));  // fp32
  EXPECT_FALSE(recipe_anchor("pix2pix", *find_gpu_sheet("V100"), 1));
}

// A step of another GPU tells half of the ratio.
TEST(RecipeSteps, OfAnotherGpuTellHalf) {
  const auto ratio = [](const char* gpu) { return recipe_anchor("stylegan3-t", *find_gpu_sheet(gpu), 4)->ratio; };
  EXPECT_NEAR(ratio("H100"), std::sqrt(ratio("A100-40GB")), 1e-9);
}

// 12 x 12 products that are not separable take longer in the same memory: R's filters beside T's.
TEST(RecipeSteps, FiltersInSharedMemoryTakeTheirTime) {
  const auto filters = [](const char* recipe) {
    double words = 0;
    for (const traces::TraceKernel& kernel : traces::kernels_of(traces::resolve_recipe(recipe).layers))
      if (kernel.phase == "generator.forward" && kernel.shared > 0)
        words += kernel.shared * static_cast<double>(kernel.cols);
    return words;
  };
  // T at 1,024 pixels: 1.27e9 numbers at the higher rates, at 12.7 to 17.7 words; R has twice the channels.
  EXPECT_NEAR(filters("stylegan3-t") / 1.27e9, 15.5, 2);
  EXPECT_GT(filters("stylegan3-r"), 2 * filters("stylegan3-t"));
}

/// GiB that the allocator hands out for a pass of so many images, and the whole memory.
DeviceMemory memory_of(const std::string& recipe, int images, bool several_gpus = false) {
  return device_memory(trace_of(recipe), images, platforms::Gpu{}, several_gpus);
}

TEST(RecipeMemory, WhatWasMeasuredIsThePeak) {
  constexpr double kGiB = 1 << 30;
  const DeviceMemory measured = memory_of("stylegan2-ada?image=512", 8);
  EXPECT_NEAR(measured.allocated / kGiB, 7.6, 1e-6);
  EXPECT_EQ(measured.measured, "measured: NVIDIA, 2020: 7.6 GiB for 8 images a pass of 512 pixels");
  EXPECT_NEAR(memory_of("stylegan2-ada?image=512", 8, true).allocated / kGiB, 7.8, 1e-6);
  EXPECT_NEAR(memory_of("stylegan2?image=256", 4).allocated / kGiB, 6.4, 1e-6);
  // Half of the images of a pass take half of what does not live as long as the weights.
  const double fixed =
      2 * memory_of("stylegan2-ada?image=512", 4).allocated - memory_of("stylegan2-ada?image=512", 8).allocated;
  EXPECT_GT(fixed / kGiB, 0.4);
  EXPECT_LT(fixed / kGiB, 1.6);
  // Carried to another pass the interval is wider, and it is widest where only the count is known.
  const auto width = [](const DeviceMemory& memory) { return memory.high / memory.low; };
  const DeviceMemory carried = memory_of("stylegan2-ada?image=512", 12),
                     counted = memory_of("stylegan2-ada?image=64", 12);
  EXPECT_GT(width(carried), width(measured));
  EXPECT_GT(width(counted), width(carried));
  EXPECT_THAT(counted.measured, IsEmpty());
  // Another precision is another memory, of which nothing is known.
  EXPECT_THAT(memory_of("stylegan2-ada?image=512&precision=fp32", 8).measured, IsEmpty());
  // A flat reduction copies the gradients when no graph lives.
  EXPECT_EQ(memory_of("r3gan", 8, true).allocated, memory_of("r3gan", 8).allocated);
  EXPECT_GT(memory_of("stylegan2-ada?image=64", 8, true).allocated, memory_of("stylegan2-ada?image=64", 8).allocated);
}

}  // namespace
}  // namespace ganymede::calibration
