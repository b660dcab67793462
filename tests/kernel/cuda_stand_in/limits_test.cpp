// What the GPU backend does at the limits of CUDA's libraries, and what it must not do under a captured step.

#include "common/errors.hpp"
#include "courses.hpp"
#include "kernel/train.hpp"
#include "small_training.hpp"

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
  const Session session;
  TrainOptions options;
  options.model = "mlp-gan";
  options.batch = 128;
  Trainer(options, nullptr, open({.precision = Precision::fp32})).run(2);
  EXPECT_GT(graph_nodes(), 0U);
  EXPECT_LE(graph_nodes(), 50U);
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
