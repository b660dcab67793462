#include "kernel/launches.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "kernel/describe.hpp"
#include "kernel/ops/launch_list.hpp"
#include "scratch.hpp"
#include "support/when.hpp"

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
  for (const std::string_view loss : {"non-saturating", "wgan-gp", "r1"})
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

// The same for every model, as `train --describe` lists it.
TEST(Launches, OfEachModelAreThoseOfARealStep) {
  LONG_TEST();
  for (const Model& model : models()) {
    TrainOptions options;
    options.model = model.name;
    const auto smallest = std::min_element(model.images.begin(), model.images.end(),
                                           [](ImageShape a, ImageShape b) { return a.height < b.height; });
    options.image = to_string(*smallest);
    options.batch = 2;
    options.threads = 2;
    options.trace = true;
    Trainer trainer(options);
    trainer.run(1);
    const traces::StepTrace trace = trainer.trace(0);
    const auto listed = launches_of(describe(options).kernels);
    for (const traces::TracePhase& phase : trace.batches[0].phases) {
      const auto found = listed.find(phase.name);
      EXPECT_EQ(found == listed.end() ? 0 : std::ceil(found->second), static_cast<double>(phase.launches))
          << model.name << " " << phase.name;
    }
  }
}

// The label's layer, below the first one with parameters, has nothing that needs a gradient of a network's own input.
TEST(Launches, LabelsNeedNoGradientOfTheInput) {
  TrainOptions labelled, plain;
  labelled.model = "cgan-28", plain.model = "dcgan-28";
  labelled.batch = plain.batch = 2;
  std::set<std::string> phases;
  for (const auto& kernel : describe(labelled).kernels)
    if (kernel.layer == "conv1" && to_string(kernel.kind) == "convolution-dgrad") phases.insert(kernel.phase);
  // The generator's conv1 is transposed.
  EXPECT_EQ(phases, (std::set<std::string>{"generator.backward_through_discriminator", "generator.forward"}));
  const auto listed = launches_of(describe(labelled).kernels), alike = launches_of(describe(plain).kernels);
  for (const char* phase : {"discriminator.backward_real", "discriminator.backward_fake", "generator.backward"})
    EXPECT_EQ(listed.at(phase), alike.at(phase)) << phase;
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
  EXPECT_EQ(total("dcgan-64", 128, "fp32"), 93);
  // On tensor cores the discriminator's first convolution and its activation are one kernel in each of three passes.
  EXPECT_EQ(total("dcgan-64", 128, "tf32"), 93 - 3);
  // The discriminator's five convolutions have gradients of weights twice, the generator's once.
  EXPECT_EQ(total("dcgan-64", 128, "bf16"), 93 - 3 + 15);
}

// In bf16 a step launches what it does in TF32, over numbers of half the size, but for the gradients of convolutions'
// weights: these have the type of the operands, and a further kernel for each adds them to gradients in fp32.
TEST(Launches, InBf16ConvertOnlyGradientsOfWeights) {
  for (const Model& model : models()) {
    TrainOptions options;
    options.model = model.name;
    options.precision = "tf32";
    const auto exact = kernels_of(options);
    options.precision = "bf16";
    auto stored = exact.begin();
    double conversions = 0, gradients = 0;
    for (const traces::TraceKernel& kernel : kernels_of(options)) {
      gradients += kernel.kind == traces::TraceKernel::Kind::convolution_weight_gradient ? 1 : 0;
      if (kernel.op == "from_bf16") {
        EXPECT_EQ(kernel.grows, traces::TraceKernel::Growth::none) << model.name;
        EXPECT_EQ(kernel.precision, "fp32") << model.name;
        ++conversions;
        continue;
      }
      traces::TraceKernel like = *stored++;
      // Parameters are fp32; Adam also writes a copy in bf16. Images and dropout's mask
      // have one byte for each number of two.
      if (like.grows == traces::TraceKernel::Growth::none && like.op != kFurtherKernel) like.precision = "fp32";
      if (like.op == "adam") like.writes += 0.5;
      if (like.op == "leaky_dropout") like.writes += 0.25;
      if (like.op == "leaky_dropout_backward" || like.op == "load_images") like.reads += 0.25;
      EXPECT_EQ(kernel, like) << model.name << " " << kernel.layer << " " << kernel.op;
    }
    EXPECT_EQ(stored, exact.end()) << model.name;
    EXPECT_EQ(conversions, gradients) << model.name;
  }
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
