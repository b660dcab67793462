#include "kernel/models/models.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/errors.hpp"
#include "kernel/ops/eigen/eigen_ops.hpp"
#include "kernel/weights.hpp"
#include "scratch.hpp"

namespace ganymede::kernel {
namespace {

constexpr std::size_t dense_count(std::size_t inputs, std::size_t outputs) { return outputs * inputs + outputs; }

TEST(MlpGan, HasThePapersParameters) {
  const Gan gan = find_model("mlp-gan").build_default();
  // Dense layers, and a scale and a shift for each normalised feature.
  EXPECT_EQ(gan.generator.parameter_count(),
            dense_count(50, 1200) + 2 * 1200 + dense_count(1200, 1000) + 2 * 1000 + dense_count(1000, 784));
  EXPECT_EQ(gan.discriminator.parameter_count(), dense_count(784, 256) + dense_count(256, 128) + dense_count(128, 1));
  // Table of the paper: trainable 2,051,384; total 2,289,769; the rest is the frozen discriminator and the moving
  // statistics.
  EXPECT_EQ(gan.generator.parameter_count(), 2'051'384U);
  EXPECT_EQ(gan.discriminator.parameter_count() + gan.generator.statistic_count(), 2'289'769U - 2'051'384U);
  EXPECT_EQ(gan.discriminator.parameter_count(), 233'985U);
  EXPECT_EQ(gan.generator.statistic_count(), 4'400U);
  EXPECT_EQ(gan.discriminator.statistic_count(), 0U);
  EXPECT_EQ(gan.generator.gradient_bytes(), 8'205'536U);
  EXPECT_EQ(gan.discriminator.gradient_bytes(), 935'940U);
}

// PyTorch's DCGAN example counts the same: convolutions of 4x4 without bias, and a scale and a shift a normalised
// channel.
TEST(Dcgan, HasRadfordsParametersAndWork) {
  const Gan small = find_model("dcgan-32").build_default(), large = find_model("dcgan-64").build_default();
  EXPECT_EQ(large.generator.parameter_count(),
            16U * (100 * 512 + 512 * 256 + 256 * 128 + 128 * 64 + 64 * 3) + 2U * (512 + 256 + 128 + 64));
  EXPECT_EQ(large.discriminator.parameter_count(),
            16U * (3 * 64 + 64 * 128 + 128 * 256 + 256 * 512 + 512 * 1) + 2U * (128 + 256 + 512));
  EXPECT_EQ(large.generator.parameter_count(), 3'576'704U);
  EXPECT_EQ(large.discriminator.parameter_count(), 2'765'568U);
  EXPECT_EQ(small.generator.parameter_count(), 1'068'928U);
  EXPECT_EQ(small.discriminator.parameter_count(), 663'296U);
  EXPECT_NEAR(large.step_flops_per_image() / 1e9, 2.2746, 5e-5);
  EXPECT_NEAR(small.step_flops_per_image() / 1e9, 0.38496, 5e-6);
  const Gan grey = find_model("dcgan-28").build_default();
  EXPECT_EQ(grey.image, (ImageShape{28, 28, 1}));
  EXPECT_EQ(grey.generator.layers()[0]->outputs(), 128 * 7 * 7);
}

TEST(Models, FitTheirImagesAndTheirLatents) {
  for (const auto& model : models())
    for (const ImageShape image : model.images) {
      const Gan gan = model.build_final(image);
      EXPECT_EQ(gan.model, model.name);
      EXPECT_EQ(gan.image, image);
      EXPECT_EQ(gan.generator.outputs(), image.pixels()) << model.name;
      EXPECT_EQ(gan.discriminator.inputs(), image.pixels()) << model.name;
      EXPECT_EQ(gan.discriminator.outputs(), gan.step == StepKind::variational ? 2 * gan.generator.inputs()
                                             : gan.takes_images()              ? 7 * 7  // patches of 22x22 pixels
                                                                               : 1);
      EXPECT_FALSE(model.summary.empty());
    }
}

TEST(Models, HoldWhatWasPlanned) {
  const auto backend = make_eigen_backend(1);
  TensorOps* const ops = backend->ops.get();
  for (const auto& model : models()) {
    Gan gan = model.build_default();
    const auto planned = gan.planned_memory_bytes(*ops, 16);
    gan.prepare(*ops, 16, 1);
    EXPECT_EQ(planned.at("activations"),
              static_cast<double>(gan.generator.activation_bytes() + gan.discriminator.activation_bytes()))
        << model.name;
    EXPECT_EQ(planned.at("data"), static_cast<double>(gan.small.bytes())) << model.name;
    EXPECT_EQ(planned.at("parameters"),
              static_cast<double>(gan.generator.parameter_bytes() + gan.discriminator.parameter_bytes()));
  }
}

/// The forms that a model takes while it grows; one for a model that does not.
std::vector<Gan> forms_of(const Model& model) {
  std::vector<Gan> forms;
  if (!model.grows()) forms.push_back(model.build_default());
  const ImageShape image = model.images.front();
  for (int stage = 1; model.grows() && stage < model.stages(image); ++stage)
    for (const bool fading : {true, false}) forms.push_back(model.build(image, {stage, fading}));
  return forms;
}

// Tensor cores and wide loads need 16 bytes; a bias of three channels must not shift the filters behind it.
TEST(Models, HaveEachArrayAtAMultipleOf64BytesAndFilesWithoutGaps) {
  for (const auto& model : models())
    for (const Gan& gan : forms_of(model))
      for (const Network* network : {&gan.generator, &gan.discriminator}) {
        std::size_t packed = 0, end = 0;
        for (const NamedRange& range : network->parameters()) {
          EXPECT_EQ(range.offset * sizeof(float) % 64, 0U) << model.name << " " << range.name;
          EXPECT_GE(range.offset, end);
          EXPECT_EQ(range.packed_offset, packed);
          end = range.offset + range.size;
          packed += range.size;
        }
        EXPECT_EQ(packed, network->parameter_count());
        EXPECT_GE(network->parameter_floats(), end);
      }
}

// Checkpoints of before the padding hold the arrays of a network one after the other, and so do those of today.
TEST(Models, AreKeptWithoutPadding) {
  const auto backend = make_eigen_backend(1);
  const Model& model = find_model("progressive-gan");
  Gan gan = model.build(ImageShape{8, 8, 3}, {1, true});
  gan.prepare(*backend->ops, 2, 3, {.average = true});
  const SafeTensors content = tensors_of(gan, *backend->ops, true);
  std::vector<float> together;
  for (const NamedRange& range : gan.generator.parameters()) {
    const auto& values = content.tensors.at("generator." + range.name).values;
    together.insert(together.end(), values.begin(), values.end());
  }
  EXPECT_LT(together.size(), gan.generator.parameter_floats());
  EXPECT_EQ(content.tensors.at("generator.average").values, together);  // before the first step
}

TEST(Models, AreBuiltForTheImagesThatTheyAreAskedFor) {
  TrainOptions options;
  EXPECT_EQ(build_gan(options).image, (ImageShape{28, 28, 1}));
  options.image = "32x32x3";
  EXPECT_EQ(build_gan(options).generator.outputs(), 3072);
  const Scratch scratch;
  options.image = "";
  options.dataset = scratch.path().string();
  scratch.write("data_batch_1.bin", std::string(3073, 1));
  EXPECT_EQ(build_gan(options).image, (ImageShape{32, 32, 3}));  // the size of CIFAR-10's images
  options.image = "64x64x3";
  EXPECT_THAT([&] { check(options); },
              testing::ThrowsMessage<ConfigError>(testing::HasSubstr("--image: found \"64x64x3\", expected ")));
}

TEST(Models, AnUnknownOneIsRefusedWithTheNearest) {
  EXPECT_THAT([] { find_model("mlp-gna"); },
              testing::ThrowsMessage<ConfigError>(testing::AllOf(testing::HasSubstr("--model: found \"mlp-gna\""),
                                                                 testing::HasSubstr("did you mean \"mlp-gan\"?"))));
}

}  // namespace
}  // namespace ganymede::kernel
