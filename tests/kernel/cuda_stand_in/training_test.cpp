// Whole trainings through the GPU backend's own host code: they compute what the CPU backend computes, whatever the
// order in which streams run, and a replayed step is the same as one that runs call by call.

#include "courses.hpp"
#include "kernel/launches.hpp"
#include "kernel/ops/eigen/eigen_ops.hpp"
#include "kernel/train.hpp"
#include "opened.hpp"
#include "support/when.hpp"

namespace ganymede::kernel::stand_in {
namespace {

class StandInSteps : public testing::TestWithParam<Steps> {};
INSTANTIATE_TEST_SUITE_P(OfModels, StandInSteps, testing::ValuesIn(kSteps), name_of_steps);

Course course(Order order, const CudaOptions& options, const Steps& what, int steps) {
  const Session session({.order = order});
  return run(*open(options), what, steps);
}

TEST_P(StandInSteps, AreTheCpusWithTheSameRandomNumbers) {
  NOT_SANITIZED("tests of one operation each take the same paths");
  const CudaOptions options{.precision = Precision::fp32, .graph = false, .host_random = true};
  expect_alike(course(Order::late, options, GetParam(), 2), run(*make_eigen_backend(1), GetParam(), 2), 1e-5,
               growth_of(GetParam()));
}

void expect_same(const Course& found, const Course& expected) {
  EXPECT_EQ(found.losses, expected.losses);
  for (const auto& [name, tensor] : expected.weights.tensors)
    EXPECT_EQ(found.weights.tensors.at(name).values, tensor.values) << name;
  EXPECT_EQ(found.samples, expected.samples);
}

TEST_P(StandInSteps, AreTheSameInEveryOrderAndReplayed) {
  NOT_SANITIZED("tests of one operation each take the same paths");
  CudaOptions options{.precision = Precision::fp32, .loads_a_step = loads_of(GetParam())};
  const Course late = course(Order::late, options, GetParam(), 3);
  expect_same(course(Order::others_first, options, GetParam(), 3), late);
  options.graph = false;
  expect_same(course(Order::at_once, options, GetParam(), 3), late);
}

// The host is a step ahead of the GPU.
TEST(StandInTrainer, HasTheSameLossesInEveryOrder) {
  TrainOptions options;
  options.model = "mlp-gan";
  options.batch = 4;
  options.discriminator_steps = 2;
  std::vector<std::vector<double>> losses;
  for (const Order order : {Order::late, Order::at_once, Order::others_first})
    for (const bool waits : {false, true}) {
      const Session session({.order = order});
      Trainer trainer(options, nullptr, open({.precision = Precision::fp32, .loads_a_step = 2}));
      auto& found = losses.emplace_back();
      trainer.run(
          6, [&](const Progress& step) { found.push_back(step.losses.generator); },
          [&](std::int64_t) { return waits; });
    }
  EXPECT_THAT(losses, testing::Each(losses.front()));
}

TEST_P(StandInSteps, InBf16StayNearThoseOfFp32AndAreReplayedTheSame) {
  NOT_SANITIZED("tests of one operation each take the same paths");
  CudaOptions options{.precision = Precision::fp32, .loads_a_step = loads_of(GetParam())};
  const Course exact = course(Order::late, options, GetParam(), 2);
  options.precision = Precision::bf16;
  const Course found = course(Order::late, options, GetParam(), 2);
  for (std::size_t i = 0; i < found.losses.size(); ++i)
    EXPECT_NEAR(found.losses[i], exact.losses[i], 0.05 * (1 + std::abs(exact.losses[i])));
  EXPECT_NE(found.losses, exact.losses);
  options.graph = false;
  expect_same(course(Order::at_once, options, GetParam(), 2), found);
}

// A step in bf16 has one more node for each gradient of a convolution's weights, and none that converts activations. It
// has one less for each activation after a convolution, because tensor cores do both at once.
TEST(StandInPrecision, OnlyGradientsOfWeightsAreConvertedInBf16) {
  const Steps what{"dcgan-28", AdversarialLoss::non_saturating};
  std::size_t nodes[2];
  for (const Precision precision : {Precision::fp32, Precision::bf16}) {
    const Session session;
    run(*open({.precision = precision, .least_fused_outputs = 0}), what, 2);
    nodes[precision == Precision::bf16 ? 1 : 0] = graph_nodes();
  }
  TrainOptions options;
  options.model = what.model;
  options.precision = "fp32";
  std::size_t gradients = 0, activations = 0;
  for (const traces::TraceKernel& kernel : kernels_of(options)) {
    gradients += kernel.kind == traces::TraceKernel::Kind::convolution_weight_gradient ? 1 : 0;
    activations += kernel.op == "activate" && kernel.layer == "conv1" ? 1 : 0;
  }
  EXPECT_GT(gradients, 0U);
  EXPECT_EQ(activations, 3U);  // real images, generated images, and those of the generator's update
  EXPECT_EQ(nodes[1], nodes[0] + gradients - activations);
}

// The stages of a growing GAN have arrays of odd sizes, but tensor cores read filters at multiples of 16 bytes.
TEST(StandInPrecision, FiltersOfAFadingGanAreAligned) {
  const Steps fading{"progressive-gan", AdversarialLoss::wasserstein, {1, true}};
  EXPECT_EQ(course(Order::late, {.precision = Precision::tf32}, fading, 1).losses.size(), 2U);
}

}  // namespace
}  // namespace ganymede::kernel::stand_in
