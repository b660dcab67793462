// The GPU backend at the limits of CUDA's libraries, and what it must not do under a captured step.

#include <cudnn.h>

#include "common/errors.hpp"
#include "courses.hpp"
#include "kept_in_memory.hpp"
#include "kernel/train.hpp"
#include "small_training.hpp"
#include "support/when.hpp"

namespace ganymede::kernel::stand_in {
namespace {

const ConvolutionShape kShape{
    .in_channels = 4, .in_height = 8, .in_width = 8, .out_channels = 2, .kernel = 3, .padding = 1};

TEST(Algorithms, ThatDoNotRunThoughPromisedAreLeftOut) {
  for (const Precision precision : {Precision::fp32, Precision::tf32, Precision::bf16}) {
    std::vector<float> losses[2];
    for (const bool broken : {false, true}) {
      const Session session({.broken_promises = broken});
      losses[broken ? 1 : 0] = SmallTraining({.precision = precision}, nullptr).run(3);
    }
    EXPECT_EQ(losses[0], losses[1]);
  }
}

/// A small training whose step has one convolution that a bias and an activation follow.
struct Fused {
  std::vector<float> losses;
  std::size_t nodes, kernels;
};
Fused run_fused(Precision precision, const Settings& settings) {
  const Session session(settings);
  const auto losses = SmallTraining({.precision = precision}, nullptr).run(3);
  return {losses, graph_nodes(), fused_convolutions()};
}

TEST(FusedConvolutions, AreOneKernelWhereCudnnHasAnEngine) {
  for (const Precision precision : {Precision::tf32, Precision::bf16}) {
    const Fused one = run_fused(precision, {}), two = run_fused(precision, {.no_fusion = true});
    EXPECT_EQ(one.kernels, 3U);  // a step call by call, a captured one and a replayed one
    EXPECT_EQ(two.kernels, 0U);
    EXPECT_EQ(two.nodes, one.nodes + 1);
    for (std::size_t i = 0; i < one.losses.size(); ++i) EXPECT_NEAR(one.losses[i], two.losses[i], 0.01);
    // Engines without a plan, and plans that do not run, are left out.
    const Fused broken = run_fused(precision, {.broken_promises = true});
    EXPECT_EQ(broken.kernels, 3U);
    EXPECT_EQ(broken.losses, one.losses);
  }
}

TEST(FusedConvolutions, OfFp32AreNotRoundedByTensorCores) {
  const Fused offered = run_fused(Precision::fp32, {}), none = run_fused(Precision::fp32, {.no_fusion = true});
  EXPECT_EQ(offered.kernels, 0U);
  EXPECT_EQ(offered.nodes, none.nodes);
  EXPECT_EQ(offered.losses, none.losses);
}

/// The losses of some steps of the MLP GAN: one call by call, one captured, one replayed.
std::vector<double> losses_of_dense_layers(const Settings& settings) {
  const Session session(settings);
  return run(*open({.precision = Precision::fp32}), {"mlp-gan", AdversarialLoss::non_saturating}, 3).losses;
}

TEST(Algorithms, OfDenseLayersWithoutEpiloguesAreFollowedByAKernel) {
  const std::vector<double> expected = losses_of_dense_layers({});
  EXPECT_EQ(losses_of_dense_layers({.broken_promises = true}), expected);
  const std::vector<double> found = losses_of_dense_layers({.no_epilogues = true});
  for (std::size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-5);
}

struct StepOfNorms {
  std::vector<double> losses;
  std::size_t together, nodes;
};

/// Steps of a model whose batch norms have several chunks of rows.
StepOfNorms steps_of_norms(bool runs_together) {
  const Session session({.runs_together = runs_together});
  const Steps dcgan{"dcgan-28", AdversarialLoss::non_saturating};
  const Course course = run(*open({.precision = Precision::fp32}), dcgan, 3);
  return {course.losses, launches_together(), graph_nodes()};
}

TEST(BatchNorm, IsOneLaunchWhereBlocksCanWaitForEachOtherAndTwoElsewhere) {
  const StepOfNorms one = steps_of_norms(true), two = steps_of_norms(false);
  EXPECT_GT(one.together, 0U);
  EXPECT_EQ(two.together, 0U);
  // Two steps were launched: one call by call, one captured.
  EXPECT_EQ(two.nodes, one.nodes + one.together / 2);
  for (std::size_t i = 0; i < one.losses.size(); ++i) EXPECT_NEAR(two.losses[i], one.losses[i], 1e-4);
}

TEST(Algorithms, OfAStepLeaveAtMost50Nodes) {
  NOT_SANITIZED("tests of one operation each take the same paths");
  const Session session;
  TrainOptions options;
  options.model = "mlp-gan";
  options.batch = 128;
  Trainer(options, nullptr, open({.precision = Precision::fp32})).run(2);
  EXPECT_GT(graph_nodes(), 0U);
  EXPECT_LE(graph_nodes(), 50U);
}

/// The losses of a small training, and the number of convolutions that ran on tensor cores in its replayed step.
struct Choice {
  std::vector<float> losses;
  std::size_t launches, on_tensor_cores;
};
Choice choose(AlgorithmChoices* choices, bool slow_tensor_cores, bool broken = false) {
  const Session session({.broken_promises = broken, .slow_tensor_cores = slow_tensor_cores});
  SmallTraining training({.precision = Precision::tf32, .choices = choices}, nullptr);
  Choice choice{training.run(3), launches(), tensor_core_convolutions()};
  choice.losses.push_back(training.step([] {}));
  choice.launches = launches() - choice.launches;
  choice.on_tensor_cores = tensor_core_convolutions() - choice.on_tensor_cores;
  return choice;
}

TEST(Algorithms, AreTimedAndTheFastestThatRepeatsIsKept) {
  const Choice first = choose(nullptr, true);
  EXPECT_EQ(first.on_tensor_cores, 3U);  // one for each pass
  for (const bool broken : {false, true}) {
    ChoicesInMemory kept;
    const Choice timed = choose(&kept, true, broken);
    EXPECT_EQ(timed.on_tensor_cores, 0U);
    EXPECT_EQ(timed.losses, first.losses);
    EXPECT_EQ(timed.launches,
              first.launches + 1);  // tensor cores have the only kernel of a convolution and its epilogue
    ASSERT_EQ(kept.all.size(), 4U);
    const auto& [key, algorithms] = *kept.all.begin();
    EXPECT_EQ(
        key,
        "stand-in, cuDNN 91900, tf32, data: batch 4 in 4 frames 1 height 8 width 8 out 8 kernel 3 kernel_frames 1 "
        "stride 2 padding 1 padding_frames 0");
    ASSERT_EQ(algorithms.size(), 3U);  // those that are promised and do not run are not among them
    for (const TimedAlgorithm& one : algorithms) EXPECT_EQ(one.seconds > 1e-3, one.math == CUDNN_TENSOR_OP_MATH);
    // A kept choice is not timed again, though another would now be faster.
    const auto as_kept = kept.all;
    EXPECT_EQ(choose(&kept, false, broken).on_tensor_cores, 0U);
    EXPECT_EQ(kept.all.begin()->second.front().seconds, as_kept.begin()->second.front().seconds);
  }
}

TEST(Algorithms, ThatAreKeptAndNotOfferedAreTimedAgain) {
  ChoicesInMemory kept;
  choose(&kept, true);
  for (auto& [key, algorithms] : kept.all) algorithms = {{77, 0, true, 1e-9}};
  EXPECT_EQ(choose(&kept, true).on_tensor_cores, 0U);
  EXPECT_EQ(kept.all.begin()->second.size(), 3U);
}

TEST(Algorithms, AreNotTimedWhereMemoryIsShort) {
  ChoicesInMemory kept;
  const Session session({.memory_bytes = std::size_t{47} << 20});
  const auto backend = open({.choices = &kept});
  const Buffer most = backend->ops->allocate(static_cast<std::size_t>(backend->ops->available_bytes()));
  EXPECT_GT(backend->ops->convolution_workspace_bytes(kShape, 4), 0U);
  EXPECT_TRUE(kept.all.empty());
}

TEST(Convolution, WithTooSmallAWorkspaceIsAnError) {
  const Session session;
  const auto backend = open({});
  const Buffer memory = backend->ops->allocate(2048 * sizeof(float)), weight = backend->ops->allocate_parameters(256);
  const Tensor x{memory.floats(), kShape.in_features(), 2}, y{memory.floats() + 1024, kShape.out_features(), 2};
  EXPECT_THAT([&] { backend->ops->convolve(y, x, kShape, weight.floats()); },
              testing::ThrowsMessage<Failure>(testing::HasSubstr("needs a workspace of")));
  backend->ops->reserve_workspace(backend->ops->convolution_workspace_bytes(kShape, 2));
  EXPECT_NO_THROW(backend->ops->convolve(y, x, kShape, weight.floats()));
}

TEST(Convolution, OfTooManyElementsSaysWhichBatchFits) {
  const Session session;
  const auto backend = open({});
  // 2^31 / 256 images have 2^31 elements: one too many.
  const int batch = (1 << 30) / kShape.in_features() * 2;
  EXPECT_NO_THROW(backend->ops->convolution_workspace_bytes(kShape, batch - 1));
  EXPECT_THAT(
      [&] { backend->ops->convolution_workspace_bytes(kShape, batch); },
      testing::ThrowsMessage<Infeasible>(testing::HasSubstr("a batch of " + std::to_string(batch - 1) + " would fit")));
}

TEST(CapturedImages, AreNotMovedByLargerOnes) {
  const Session session;
  SmallTraining training({}, nullptr);
  training.run(3);
  const std::vector<std::uint8_t> larger(100'000);
  DeviceTimeline& timeline = *training.backend().timeline;
  EXPECT_THROW(timeline.prefetch_images(larger), Failure);
  training.run(1);
  timeline.discard_step();
  EXPECT_NO_THROW(timeline.prefetch_images(larger));
  timeline.discard_step();
  training.run(3);
}

}  // namespace
}  // namespace ganymede::kernel::stand_in
