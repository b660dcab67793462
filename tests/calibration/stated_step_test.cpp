// A step that the user states: it keeps its length on its own GPU, and its ratio to the kernel model on others.

#include "calibration/stated_step.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "calibration/kernel_steps.hpp"
#include "calibration/workload_model.hpp"
#include "common/errors.hpp"
#include "common/json.hpp"
#include "common/json_value.hpp"
#include "common/units.hpp"
#include "support/errors.hpp"
#include "traces/recorded.hpp"

namespace ganymede::calibration {
namespace {
using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;

JsonNode stated_node(const char* text) { return JsonNode::parse(text, "scenario.json"); }

traces::StepTrace built_in(const std::string& name) {
  return traces::read_step_trace(
      JsonNode::parse(traces::trace_text(JsonNode::wrap(Json(name), "scenario.json", "")), name));
}

platforms::Gpu gpu_named(const std::string& name) {
  const GpuSheet& sheet = *find_gpu_sheet(name);
  platforms::Gpu gpu;
  gpu.name = gpu.family = name;
  gpu.fp32 = FlopsPerSecond{sheet.fp32_flops()};
  gpu.memory_bandwidth = BytesPerSecond{sheet.memory_bandwidth};
  gpu.launch = Seconds{3.8e-6};
  return gpu;
}

/// Seconds of a step of the model on a GPU by the model of kernel times alone.
double predicted_s(const std::string& model, int batch, const std::string& gpu) {
  const traces::StepTrace trace = built_in(model);
  auto kernels = kernels_at(trace, *trace.find_batch(batch));
  predict(kernels, KernelModel(*find_gpu_sheet(gpu)));
  return sum_of(kernels, executor_of(trace)).seconds;
}

traces::StepTrace on_3090(const std::string& step, const std::string& model = "layers:cyclegan", int batch = 4) {
  const std::string text =
      R"({ "step": ")" + step + R"(", "batch": )" + std::to_string(batch) + R"(, "gpu": "RTX3090" })";
  const JsonNode node = stated_node(text.c_str());
  return with_stated_step(built_in(model), read_stated_step(node), node);
}

TEST(StatedStep, IsTheStepOnItsOwnGpu) {
  const traces::StepTrace trace = on_3090("1.5s");
  ASSERT_TRUE(is_stated(trace));
  ASSERT_EQ(trace.batches.size(), 1U);
  const WorkloadModel same = workload_on(trace, trace.batches[0], gpu_named("RTX3090"), nullptr);
  EXPECT_EQ(same.provenance, Provenance::stated);
  EXPECT_EQ(to_string(same.provenance), "measured (stated by the user)");
  EXPECT_NEAR(same.central.mean_s(), 1.5, 1e-9);
  // Runs of a program differ by 1.96 x sqrt(2) x 5 %, and the statement may be off by 10 %.
  EXPECT_NEAR(same.relative_error, std::hypot(1.96 * std::sqrt(2.0) * kRunDrift, 0.1), 1e-12);
  EXPECT_THAT(same.rule, HasSubstr("a step of 1.5 s at batch 4 on RTX3090, measured (stated by the user)"));
  // Platforms may write the name in another way.
  EXPECT_EQ(workload_on(trace, trace.batches[0], gpu_named("GeForce RTX 3090"), nullptr).provenance,
            Provenance::stated);
}

TEST(StatedStep, CarriesItsRatioToTheKernelModelToOtherGpus) {
  const double on_source = predicted_s("layers:cyclegan", 4, "RTX3090");
  for (const double ratio : {1.0, 1.5, 0.8}) {
    const traces::StepTrace trace = on_3090(std::to_string(ratio * on_source) + "s");
    const WorkloadModel there = workload_on(trace, trace.batches[0], gpu_named("A100-40GB"), nullptr);
    EXPECT_EQ(there.provenance, Provenance::transferred);
    const double expected = ratio * predicted_s("layers:cyclegan", 4, "A100-40GB");
    EXPECT_NEAR(there.central.mean_s(), expected, 1e-4 * expected) << ratio;
    EXPECT_LT(there.low.mean_s(), 0.9 * expected);
    EXPECT_GT(there.high.mean_s(), 1.1 * expected);
    EXPECT_THAT(there.rule, AllOf(HasSubstr("stated by the user"), HasSubstr("A100-40GB")));
  }
}

// A measurement says more than the list of layers alone.
TEST(StatedStep, NarrowsTheInterval) {
  const traces::StepTrace counted = built_in("layers:cyclegan"), trace = on_3090("1.5s");
  const platforms::Gpu target = gpu_named("A100-40GB");
  const WorkloadModel alone = workload_on(counted, *counted.find_batch(4), target, nullptr);
  const WorkloadModel with = workload_on(trace, trace.batches[0], target, nullptr);
  EXPECT_LT(with.high.mean_s() / with.central.mean_s(), alone.high.mean_s() / alone.central.mean_s());
}

TEST(StatedStep, MayBeOfABatchThatNoListHas) {
  const traces::StepTrace trace = on_3090("1s", "layers:cyclegan", 6);
  EXPECT_EQ(trace.batches[0].batch, 6);
  EXPECT_NEAR(workload_on(trace, trace.batches[0], gpu_named("RTX3090"), nullptr).central.mean_s(), 1, 1e-9);
}

TEST(StatedStep, FarFromTheModelIsDoubted) {
  const traces::StepTrace trace = on_3090("1000s");
  EXPECT_THAT(workload_on(trace, trace.batches[0], gpu_named("A100-40GB"), nullptr).warnings,
              Contains(HasSubstr("is it of this model, batch and precision")));
}

TEST(StatedStep, IsReadStrictly) {
  const StatedStep rate =
      read_stated_step(stated_node(R"({ "images_per_second": 200, "batch": 50, "gpu": "GeForce RTX 3090" })"));
  EXPECT_DOUBLE_EQ(rate.step.si, 0.25);
  EXPECT_EQ(rate.gpu, "RTX3090");
  const auto why = [](const char* text) {
    return message_of<ConfigError>([&] { (void)read_stated_step(stated_node(text)); });
  };
  EXPECT_THAT(why(R"({ "step": "0s", "batch": 4, "gpu": "RTX3090" })"),
              HasSubstr("scenario.json: /step: found \"0s\""));
  EXPECT_THAT(why(R"({ "step": 0.1, "batch": 4, "gpu": "RTX3090" })"), HasSubstr("found 0.1, which has no unit"));
  EXPECT_THAT(why(R"({ "step": "1s", "batch": 0, "gpu": "RTX3090" })"), HasSubstr("/batch: found 0"));
  EXPECT_THAT(why(R"({ "step": "1s", "batch": 4, "gpu": "RTX3900" })"),
              AllOf(HasSubstr("/gpu: found \"RTX3900\""), HasSubstr("did you mean \"RTX3090\"?"), HasSubstr("H100")));
  EXPECT_THAT(why(R"({ "step": "1s", "images_per_second": 3, "batch": 4, "gpu": "RTX3090" })"),
              HasSubstr("only one of the two"));
  EXPECT_THAT(why(R"({ "images_per_second": 0, "batch": 4, "gpu": "RTX3090" })"), HasSubstr("/images_per_second"));
}

}  // namespace
}  // namespace ganymede::calibration
