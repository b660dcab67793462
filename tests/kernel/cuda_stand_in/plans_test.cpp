// Plans of cuDNN for convolutions and what follows: compiled once, kept, and taken by their times.

#include <map>
#include <string>

#include "kept_in_memory.hpp"
#include "small_training.hpp"

namespace ganymede::kernel::stand_in {
namespace {

struct Planned {
  std::vector<float> losses;
  std::size_t compiled, fused, on_tensor_cores;
};
Planned train(const CudaOptions& options, const Settings& settings = {}) {
  const Session session(settings);
  const auto losses = SmallTraining(options, nullptr).run(3);
  return {losses, compiled_plans(), fused_convolutions(), tensor_core_convolutions()};
}

TEST(Plans, AreCompiledOnceAndThenReadBack) {
  for (const Precision precision : {Precision::tf32, Precision::bf16}) {
    const Planned plain = train({.precision = precision});
    PlansInMemory kept;
    const Planned first = train({.precision = precision, .plans = &kept});
    ASSERT_EQ(kept.all.size(), 1U);
    const auto& [key, text] = *kept.all.begin();
    EXPECT_EQ(key, "stand-in, cuDNN 91900, " + std::string(precision == Precision::tf32 ? "tf32" : "bf16") +
                       ", forward, bias and activation: batch 4 in 4 frames 1 height 8 width 8 out 8 kernel 3 "
                       "kernel_frames 1 stride 2 padding 1 padding_frames 0 scaled, slope 0.200000, engine 0");
    EXPECT_FALSE(text.empty());
    const Planned second = train({.precision = precision, .plans = &kept});
    EXPECT_EQ(first.compiled, plain.compiled);
    EXPECT_EQ(second.compiled, 0U);
    EXPECT_EQ(second.fused, 3U);
    EXPECT_EQ(first.losses, plain.losses);
    EXPECT_EQ(second.losses, plain.losses);
  }
}

TEST(Plans, ThatCudnnDoesNotTakeBackAreCompiledAndKeptAnew) {
  PlansInMemory kept;
  const Planned first = train({.precision = Precision::bf16, .plans = &kept});
  const auto as_kept = kept.all;
  ASSERT_EQ(as_kept.size(), 1U);
  // An engine that this cuDNN does not have, and one that wants more workspace than is reserved.
  const std::string& text = as_kept.begin()->second;
  const std::string numbers = text.substr(text.find(' ', text.find("plan ") + 5));
  for (const std::string& other : {std::string("no plan"), "stand-in plan 99" + numbers, "stand-in plan 1" + numbers}) {
    kept.all.begin()->second = other;
    const Planned again = train({.precision = Precision::bf16, .plans = &kept});
    EXPECT_EQ(again.losses, first.losses);
    EXPECT_EQ(again.compiled, first.compiled);
    EXPECT_EQ(kept.all, as_kept);
  }
}

TEST(Plans, ThatDoNotRunAreNotKept) {
  PlansInMemory kept;
  const Settings broken{.broken_promises = true};
  const Planned first = train({.precision = Precision::bf16, .plans = &kept}, broken);
  EXPECT_EQ(first.fused, 4U);  // once more to see that it runs
  const Planned second = train({.precision = Precision::bf16, .plans = &kept}, broken);
  EXPECT_EQ(second.compiled, 0U);
  EXPECT_EQ(second.losses, first.losses);
}

TEST(Plans, WithoutTensorCoresAreTakenOnlyIfTheirTimesAreBest) {
  const Settings slow{.slow_algorithms = true};
  const Planned untimed = train({.precision = Precision::fp32}, slow);
  EXPECT_EQ(untimed.fused, 0U);
  EXPECT_EQ(untimed.compiled, 0U);
  ChoicesInMemory choices;
  PlansInMemory plans;
  const CudaOptions timed{.precision = Precision::fp32, .choices = &choices, .plans = &plans};
  const Planned first = train(timed, slow);
  EXPECT_GT(first.fused, 3U);
  EXPECT_EQ(first.on_tensor_cores, 0U);
  for (std::size_t i = 0; i < first.losses.size(); ++i) EXPECT_NEAR(first.losses[i], untimed.losses[i], 1e-4);
  // Neither timed nor compiled again, though two kernels would now be faster.
  const Planned second = train(timed);
  EXPECT_EQ(second.compiled, 0U);
  EXPECT_EQ(second.fused, 3U);
  EXPECT_EQ(second.losses, first.losses);
  // Without the text the engine that was the fastest is compiled, and no other.
  plans.all.clear();
  EXPECT_EQ(train(timed).compiled, 1U);
  EXPECT_EQ(plans.all.size(), 1U);
}

TEST(Plans, SlowerThanTwoKernelsAreNeitherKeptNorCompiledAgain) {
  ChoicesInMemory choices;
  PlansInMemory plans;
  const CudaOptions timed{.precision = Precision::tf32, .choices = &choices, .plans = &plans};
  const Planned first = train(timed, {.slow_tensor_cores = true});
  EXPECT_GT(first.compiled, 0U);
  EXPECT_TRUE(plans.all.empty());
  const Planned second = train(timed);
  EXPECT_EQ(second.compiled, 0U);
  EXPECT_EQ(second.fused, 0U);
  EXPECT_EQ(second.losses, first.losses);
}

TEST(Plans, AreOnlyForConvolutionsOfManyOutputs) {
  for (const int height : {255, 256}) {
    const Session session;
    const auto backend = open({.precision = Precision::tf32});
    const ConvolutionShape shape{
        .in_channels = 1, .in_height = height, .in_width = 256, .out_channels = 1, .kernel = 1};
    const Buffer memory = backend->ops->allocate(std::size_t{2} * 256 * 256 * sizeof(float));
    const Buffer weight = backend->ops->allocate_parameters(64);
    backend->ops->reserve_workspace(backend->ops->convolution_workspace_bytes(shape, 1));
    backend->ops->convolve({memory.floats() + 256 * 256, shape.out_features(), 1},
                           {memory.floats(), shape.in_features(), 1}, shape, weight.floats(), {.slope = 0.2F});
    EXPECT_EQ(compiled_plans() > 0, shape.out_features() >= kLeastFusedOutputs) << height;
  }
}

}  // namespace
}  // namespace ganymede::kernel::stand_in
