#include "kernel/gan_step.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "kernel/models/models.hpp"
#include "kernel/samples.hpp"
#include "kernel/weights.hpp"
#include "scratch.hpp"
#include "support/when.hpp"

namespace ganymede::kernel {
namespace {

std::vector<Losses> train(const TrainOptions& options, int steps) {
  Trainer trainer(options);
  std::vector<Losses> losses;
  for (int i = 0; i < steps; ++i) losses.push_back(trainer.step());
  return losses;
}

void expect_equal(const std::vector<Losses>& a, const std::vector<Losses>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].discriminator, b[i].discriminator) << i;
    EXPECT_EQ(a[i].generator, b[i].generator) << i;
  }
}

TEST(GanStep, DoesTheCountedWork) {
  const Scratch scratch;
  Trainer trainer(small_training(scratch));
  const Work before = trainer.ops().work();
  trainer.step();
  const Work work = trainer.ops().work() - before;
  // 2 FLOPs for each multiply-add, layer by layer.
  const double g1 = 2.0 * 50 * 1200, g = g1 + 2.0 * 1200 * 1000 + 2.0 * 1000 * 784;
  const double d1 = 2.0 * 784 * 256, d = d1 + 2.0 * 256 * 128 + 2.0 * 128;
  // The discriminator: forward pass, weights and data on two batches, but no gradient of the images. The generator:
  // forward pass, through the frozen discriminator and back, weights and data, but no gradient of the latents.
  const double per_image = 2 * (3 * d - d1) + g + 2 * d + (2 * g - g1);
  EXPECT_EQ(work.flops, per_image * trainer.options().batch);
  EXPECT_NEAR(per_image / 1e9, 0.015079, 5e-7);
  EXPECT_EQ(trainer.gan().step_flops_per_image(), per_image);
}

TEST(GanStep, SameSeedSameLosses) {
  const Scratch scratch;
  TrainOptions options = small_training(scratch);
  const auto first = train(options, 8);
  expect_equal(first, train(options, 8));
  options.seed = 2;
  const auto other = train(options, 8);
  EXPECT_NE(first[0].discriminator, other[0].discriminator);
}

TEST(GanStep, ThreadsDoNotChangeTheLosses) {
  const Scratch scratch;
  TrainOptions options = small_training(scratch);
  options.threads = 1;
  const auto one = train(options, 5);
  options.threads = 3;
  expect_equal(one, train(options, 5));
}

TEST(GanStep, StartsUndecidedAndTheDiscriminatorLearns) {
  const Scratch scratch;
  TrainOptions options = small_training(scratch);
  options.learning_rate = 5e-4F;
  const auto losses = train(options, 25);
  // A discriminator that cannot tell real from fake has a loss of log 2 on each half.
  EXPECT_NEAR(losses.front().discriminator, 2 * std::log(2.0), 0.3);
  EXPECT_NEAR(losses.front().generator, std::log(2.0), 0.2);
  EXPECT_LT(losses.back().discriminator, 0.7 * losses.front().discriminator);
}

double mean_generated(Trainer& trainer) {
  Gan& gan = trainer.gan();
  RandomStream random(1, "tests/latent");
  trainer.ops().fill_normal(gan.latent, random);
  std::vector<float> images(static_cast<std::size_t>(gan.image.pixels() * gan.batch));
  trainer.ops().read(images, gan.generator.infer(trainer.ops(), gan.latent));
  return std::accumulate(images.begin(), images.end(), 0.0) / static_cast<double>(images.size());
}

TEST(GanStep, GeneratedImagesMoveTowardsTheData) {
  const Scratch scratch;
  TrainOptions options = small_training(scratch);
  options.learning_rate = 5e-4F;
  Trainer trainer(options);
  const auto& pixels = trainer.dataset().images.pixels;
  const double wanted =
      std::accumulate(pixels.begin(), pixels.end(), 0.0) / (255.0 * static_cast<double>(pixels.size()));
  const double before = std::abs(mean_generated(trainer) - wanted);
  trainer.run(60);
  EXPECT_LT(std::abs(mean_generated(trainer) - wanted), 0.5 * before);
}

TEST(GanStep, TheGeneratorsUpdateLeavesTheDiscriminatorsGradients) {
  const Scratch scratch;
  Trainer trainer(small_training(scratch));
  trainer.step();
  Gan& gan = trainer.gan();
  const std::size_t count = gan.discriminator.parameter_count();
  std::vector<float> before(count), after(count);
  trainer.ops().read(before, gan.discriminator.gradient_data());
  // The same calls as in gan_step after the discriminator's update.
  RandomStream noise(1, "tests/noise");
  const Tensor logits = forward(gan.discriminator, trainer.ops(), gan.real, noise);
  trainer.ops().adversarial_loss(gan.losses, gan.d_logits, logits, LossTerm::cross_entropy_real);
  const Tensor dx = backward(gan.discriminator, trainer.ops(), gan.d_logits,
                             {.weights = false, .accumulate = false, .input = true}, [](std::size_t) {});
  trainer.ops().read(after, gan.discriminator.gradient_data());
  EXPECT_EQ(before, after);
  EXPECT_EQ(dx.features, gan.image.pixels());
}

TEST(GanStep, RepeatsTheDiscriminatorsUpdateOnBatchesOfTheirOwn) {
  const Scratch scratch;
  TrainOptions options = small_training(scratch, 100);  // three batches in an epoch
  options.discriminator_steps = 3;
  Trainer trainer(options);
  const Work before = trainer.ops().work();
  trainer.step();
  const Work work = trainer.ops().work() - before;
  EXPECT_EQ(work.flops, trainer.gan().step_flops_per_image(3) * options.batch);
  EXPECT_EQ(trainer.gan().discriminator.updates(), 3);
  EXPECT_EQ(trainer.gan().generator.updates(), 1);
  trainer.step();
  EXPECT_EQ(trainer.epoch(), 2);
}

// The value of each loss if all logits are zero, because the last layer's weights and bias are.
TEST(GanStep, LossesOfAnUndecidedDiscriminator) {
  const std::map<std::string, std::pair<double, double>> expected = {
      {"non-saturating", {2 * std::log(2.0), std::log(2.0)}},
      {"minimax", {2 * std::log(2.0), -std::log(2.0)}},
      {"hinge", {2, 0}}};
  for (const auto& [loss, values] : expected) {
    const Scratch scratch;
    TrainOptions options = small_training(scratch, 40);
    options.loss = loss;
    options.learning_rate = 1e-6F;  // so small that the discriminator's update hardly changes the generator's loss
    Trainer trainer(options);
    const auto& last = trainer.gan().discriminator.parameters().end()[-2];
    trainer.ops().write(trainer.gan().discriminator.parameter_data() + last.offset, std::vector<float>(last.size + 1));
    const Losses losses = trainer.step();
    EXPECT_NEAR(losses.discriminator, values.first, 1e-3) << loss;
    EXPECT_NEAR(losses.generator, values.second, 1e-3) << loss;
  }
}

TEST(GanStep, TheAverageFollowsTheGenerator) {
  const Scratch scratch;
  TrainOptions options = small_training(scratch, 40);
  options.average_decay = 0.5F;
  Trainer trainer(options);
  const Network& generator = trainer.gan().generator;
  const auto read = [&](const float* from) {
    std::vector<float> values(generator.parameter_count());
    trainer.ops().read(values, from);
    return values;
  };
  auto expected = read(generator.parameter_data());
  for (int t = 1; t <= 12; ++t) {
    trainer.step();
    const float decay = std::min(0.5F, (1.0F + static_cast<float>(t)) / (10.0F + static_cast<float>(t)));
    const auto now = read(generator.parameter_data());
    for (std::size_t i = 0; i < now.size(); ++i) expected[i] = decay * expected[i] + (1 - decay) * now[i];
  }
  const auto found = read(trainer.gan().average.floats());
  for (std::size_t i = 0; i < found.size(); i += 97) ASSERT_NEAR(found[i], expected[i], 1e-6) << i;
  // The average of the weights changes the samples, but not the training.
  options.average_decay = 0;
  Trainer without(options);
  without.run(12);
  EXPECT_TRUE(write_weights(trainer.gan(), trainer.ops()) == write_weights(without.gan(), without.ops()));
  EXPECT_FALSE(sample_grid(trainer.gan(), trainer.ops(), 1, 4) == sample_grid(without.gan(), without.ops(), 1, 4));
  EXPECT_TRUE(write_weights(trainer.gan(), trainer.ops()) == write_weights(without.gan(), without.ops()));
}

TEST(GanStep, EveryModelLearnsFromTheBuiltInImages) {
  LONG_TEST();
  for (const auto& model : models()) {
    TrainOptions options;
    options.model = model.name;
    options.batch = 8;
    if (model.grows())
      options.stage_steps = 100;  // the run stays in the first stage
    else
      options.learning_rate = 2e-4F;
    Trainer trainer(options);
    const Losses first = trainer.step();
    const Losses last = trainer.run(12).losses;
    // An autoencoder begins with codes that say nothing: their divergence grows while its images come nearer.
    if (trainer.gan().step == StepKind::variational)
      EXPECT_LT(last.discriminator + last.generator, first.discriminator + first.generator) << model.name;
    else
      EXPECT_LT(last.discriminator, first.discriminator) << model.name;
  }
}

}  // namespace
}  // namespace ganymede::kernel
