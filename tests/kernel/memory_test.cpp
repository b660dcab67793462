// The memory of a training: recomputed activations need less, with the same losses, and the prediction exceeds the
// measured peak by at most 2 %.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "common/errors.hpp"
#include "kernel/describe.hpp"
#include "kernel/models/models.hpp"
#include "kernel/step_clock.hpp"
#include "kernel/train.hpp"
#include "scratch.hpp"
#include "support/when.hpp"

namespace ganymede::kernel {
namespace {

TrainOptions options_of(const Model& model) {
  TrainOptions options;
  options.model = model.name;
  options.batch = 4;
  options.threads = 2;
  // The model's smallest images, so that the test is quick.
  const auto smallest = std::min_element(model.images.begin(), model.images.end(),
                                         [](ImageShape a, ImageShape b) { return a.pixels() < b.pixels(); });
  options.image = to_string(*smallest);
  return options;
}

Losses losses_after(const TrainOptions& options, std::int64_t steps) { return Trainer(options).run(steps).losses; }

double activations_of(const TrainOptions& options) {
  const auto memory = describe(options).memory_bytes;
  return memory.at("activations") + memory.at("shared");
}

TEST(Recomputation, ChangesNoLossOfAnyModelNorItsMovingStatistics) {
  LONG_TEST();
  for (const Model& model : models()) {
    TrainOptions options = options_of(model);
    if (model.grows()) options.stage_steps = 1;  // so that the run passes through all stages
    Trainer plain(options);
    options.recompute = true;
    Trainer again(options);
    for (int step = 0; step < 4; ++step) {
      const Losses expected = plain.step(), found = again.step();
      EXPECT_EQ(found.discriminator, expected.discriminator) << model.name << " " << step;
      EXPECT_EQ(found.generator, expected.generator) << model.name << " " << step;
    }
    std::vector<float> a(plain.gan().generator.statistic_count()), b(a.size());
    plain.ops().read(a, plain.gan().generator.statistic_data());
    again.ops().read(b, again.gan().generator.statistic_data());
    EXPECT_EQ(a, b) << model.name;
  }
}

TEST(Recomputation, KeepsLessAndComputesMore) {
  for (const char* name : {"dcgan-32", "dcgan-64"}) {
    TrainOptions options = options_of(find_model(name));
    const double plain = activations_of(options), work = describe(options).flops_per_step;
    options.recompute = true;
    EXPECT_LT(activations_of(options), 0.9 * plain) << name;
    EXPECT_GT(describe(options).flops_per_step, 1.05 * work) << name;
    options.activations = "fp16";
    EXPECT_LT(activations_of(options), 0.85 * plain) << name;
  }
}

TEST(Recomputation, CountsItsWork) {
  TrainOptions options = options_of(find_model("dcgan-28"));
  options.recompute = true;
  Trainer trainer(options);
  trainer.step();
  const Work before = trainer.ops().work();
  trainer.step();
  EXPECT_EQ((trainer.ops().work() - before).flops, describe(options).flops_per_step);
}

TEST(FewerBits, ChangeTheLossesALittle) {
  TrainOptions options = options_of(find_model("dcgan-28"));
  options.learning_rate = 1e-5F;
  options.epsilon = 1e-4F;
  const Losses plain = losses_after(options, 6);
  for (const char* bits : {"fp16", "bf16", "int8"}) {
    options.activations = bits;
    const double difference = std::abs(losses_after(options, 6).generator - plain.generator);
    EXPECT_GT(difference, 0) << bits;
    EXPECT_LT(difference, 0.05 * std::abs(plain.generator)) << bits;
  }
}

TEST(MemoryInUse, IsLargestWhereBothNetworksHoldActivations) {
  TrainOptions options = options_of(find_model("dcgan-32"));
  const Description plain = describe(options);
  const auto of = [&](const Description& description, std::string_view phase) {
    for (const auto& [name, bytes] : description.memory_in_use_bytes)
      if (name == phase) return bytes;
    ADD_FAILURE() << phase;
    return 0.0;
  };
  double total = 0;
  for (const auto& [kind, bytes] : plain.memory_bytes) total += bytes;
  EXPECT_EQ(plain.memory_in_use_bytes.size(), phases_of(StepKind::adversarial, false).size());
  const double most = of(plain, "discriminator.backward_fake"), least = of(plain, "load");
  for (const auto& [phase, bytes] : plain.memory_in_use_bytes) {
    EXPECT_LE(bytes, most) << phase;
    EXPECT_GE(bytes, least) << phase;
  }
  EXPECT_LE(most, total);
  EXPECT_EQ(of(plain, "discriminator.backward_fake"), of(plain, "generator.backward_through_discriminator"));
  // The memory that both networks hold, without shared memory and workspace.
  EXPECT_EQ(of(plain, "generator.forward") - of(plain, "discriminator.update"),
            of(plain, "generator.backward") - of(plain, "discriminator.update") - plain.memory_bytes.at("shared"));
  options.loss = "wgan-gp";
  EXPECT_GT(of(describe(options), "discriminator.gradient_penalty"), most);
}

TEST(PredictedMemory, IsWhatIsAllocated) {
  LONG_TEST();
  for (const Model& model : models())
    for (const bool recompute : {false, true}) {
      TrainOptions options = options_of(model);
      options.recompute = recompute;
      options.average_decay = 0.9F;
      const auto predicted = describe(options).memory_bytes;
      const double total = std::accumulate(predicted.begin(), predicted.end(), 0.0,
                                           [](double sum, const auto& kind) { return sum + kind.second; });
      const auto backend = make_backend(options);
      TensorOps* const ops = backend->ops.get();
      Gan gan = build_gan(options);
      gan.prepare(*ops, options.batch, 1, gan_options_of(options));
      EXPECT_NEAR(static_cast<double>(ops->peak_allocated_bytes()), total, 1e-9 * total) << model.name;
    }
}

TEST(PredictedMemory, OfAGrowingModelIsThatOfItsLargestForm) {
  LONG_TEST();
  TrainOptions options = options_of(find_model("progressive-gan"));
  options.image = "32x32x3";
  options.stage_steps = 1;
  options.average_decay = 0.9F;
  Trainer trainer(options);
  trainer.run(7);
  ASSERT_EQ(trainer.gan().image.height, 32);
  const auto peak = static_cast<double>(trainer.ops().peak_allocated_bytes());
  const double predicted = predicted_memory_bytes(options, trainer.ops());
  EXPECT_LE(peak, predicted);
  EXPECT_GT(peak, 0.98 * predicted);
}

TEST(CheckMemory, NamesTheLargestBatchThatFits) {
  TrainOptions options = options_of(find_model("dcgan-28"));
  const auto backend = make_backend(options);
  TensorOps* const ops = backend->ops.get();
  const auto of_batch = [&](int batch) {
    TrainOptions other = options;
    other.batch = batch;
    return predicted_memory_bytes(other, *ops);
  };
  options.batch = 100;
  check_memory(options, *ops, of_batch(100));
  check_memory(options, *ops, 0);
  const auto refusal = [&](double available) { return [&, available] { check_memory(options, *ops, available); }; };
  EXPECT_THAT(refusal(of_batch(100) - 1),
              testing::ThrowsMessage<Infeasible>(testing::HasSubstr("a batch of 99 would fit")));
  EXPECT_THAT(refusal(of_batch(37)), testing::ThrowsMessage<Infeasible>(testing::HasSubstr("a batch of 37 would fit")));
  EXPECT_THAT(refusal(1e6), testing::ThrowsMessage<Infeasible>(testing::HasSubstr("no batch would fit")));
}

}  // namespace
}  // namespace ganymede::kernel
