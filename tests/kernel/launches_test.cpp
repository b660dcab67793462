#include "kernel/launches.hpp"

#include <gtest/gtest.h>

#include <map>

#include "kernel/describe.hpp"
#include "kernel/ops/counting/counting_backend.hpp"
#include "scratch.hpp"

namespace ganymede::kernel {
namespace {

std::map<std::string, double> launches_of(const std::vector<traces::TraceKernel>& kernels) {
  std::map<std::string, double> launches;
  for (const traces::TraceKernel& kernel : kernels) launches[kernel.phase] += kernel.times;
  return launches;
}

// A real training counts its launches phase by phase; the list is made without training.
TEST(Launches, OfEachLossAreThoseOfARealStep) {
  const Scratch scratch;
  for (const std::string_view loss : {"non-saturating", "wgan-gp"})
    for (const int updates : {1, 2}) {
      TrainOptions options = small_training(scratch);
      options.model = "dcgan-28";
      options.batch = 4;
      options.trace = true;
      options.loss = loss;
      options.discriminator_steps = updates;
      options.average_decay = 0.9F;
      Trainer trainer(options);
      trainer.run(1);
      const traces::StepTrace trace = trainer.trace(0);
      const auto listed = launches_of(trace.kernels);
      for (const traces::TracePhase& phase : trace.batches[0].phases) {
        const auto found = listed.find(phase.name);
        EXPECT_EQ(found == listed.end() ? 0 : found->second, static_cast<double>(phase.launches))
            << loss << " " << phase.name;
      }
    }
}

TEST(Launches, OfAGraphHaveConversions) {
  const auto total = [](const char* model, int batch, const char* precision) {
    TrainOptions options;
    options.model = model;
    options.batch = batch;
    options.precision = precision;
    std::int64_t launches = 0;
    for (const auto& [phase, count] : launches_of(options, {}).in_phases) launches += count;
    return launches;
  };
  // Counted in graphs that were captured over stand-ins of the libraries: these many kernels and calls of a library.
  EXPECT_EQ(total("mlp-gan", 64, "fp32"), 47);
  EXPECT_EQ(total("dcgan-64", 128, "fp32"), 145);
  EXPECT_GT(total("dcgan-64", 128, "bf16"), 145 + 100);
}

// Three conversions at each of 52 convolutions; at batch 128 they move 2.25 GB, which storing bf16 would save.
TEST(Launches, InBf16ConvertTheNumbersOfConvolutions) {
  TrainOptions options;
  options.model = "dcgan-64", options.batch = 128, options.precision = "bf16";
  double bytes = 0, conversions = 0;
  for (const traces::TraceKernel& kernel : kernels_of(options, {})) {
    if (!kernel.op.ends_with("_bf16")) continue;
    EXPECT_EQ(kernel.precision, "fp32") << kernel.op;
    const double images = kernel.grows == traces::TraceKernel::Growth::none ? 1 : options.batch;
    bytes += 4 * images * static_cast<double>(kernel.rows * kernel.cols) * (kernel.reads + kernel.writes);
    conversions += kernel.times;
  }
  EXPECT_EQ(conversions, 3 * 52);
  EXPECT_NEAR(bytes, 2.25e9, 0.01e9);
}

TEST(Launches, AreDescribedForEveryModel) {
  for (const Model& model : models()) {
    TrainOptions options;
    options.model = model.name;
    const Description description = describe(options);
    double flops = 0;
    for (const traces::TraceKernel& kernel : description.kernels) {
      flops += kernel.times * kernel.flops() * options.batch;
      EXPECT_FALSE(kernel.phase.empty()) << model.name;
    }
    EXPECT_NEAR(flops, description.flops_per_step, 1e-9 * flops) << model.name;
  }
}

// A convolution of dcgan-28 reads a batch of 28 x 28 grey images; names of layers are those of `--describe`.
TEST(Launches, HaveTheirShapesAndLayers) {
  TrainOptions options;
  options.model = "dcgan-28";
  const auto kernels = kernels_of(options);
  const auto first = std::find_if(kernels.begin(), kernels.end(), [](const traces::TraceKernel& kernel) {
    return kernel.phase == "discriminator.forward_real";
  });
  EXPECT_EQ(first->layer, "conv1");
  EXPECT_EQ(first->kind, traces::TraceKernel::Kind::convolution);
  EXPECT_EQ(first->in_channels, 1);
  EXPECT_EQ(first->in[1], 28);
  EXPECT_EQ(first->stride[1], 2);
  const traces::TraceKernel& update = kernels.back();
  EXPECT_EQ(update.op, "adam");
  EXPECT_EQ(update.grows, traces::TraceKernel::Growth::none);
  EXPECT_EQ(update.reads + update.writes, 7);
}

}  // namespace
}  // namespace ganymede::kernel
