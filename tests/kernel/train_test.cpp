#include "kernel/train.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "common/errors.hpp"
#include "common/json_value.hpp"
#include "kernel/describe.hpp"
#include "kernel/ops/cuda/cuda_backend.hpp"
#include "scratch.hpp"

namespace ganymede::kernel {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

template <class Change>
void expect_refused(const Change& change, const std::string& flag) {
  TrainOptions options;
  change(options);
  EXPECT_THAT([&] { check(options); },
              ThrowsMessage<ConfigError>(AllOf(HasSubstr(flag + ": found"), HasSubstr("expected"))))
      << flag;
}

TEST(TrainOptions, RefuseWhatCannotBeTrained) {
  check(TrainOptions{});
  for (const int batch : {-1, 0, 1, kMaxBatch + 1}) expect_refused([&](auto& o) { o.batch = batch; }, "--batch");
  for (const float rate : {0.0F, -1e-4F, 2.0F, std::nanf(""), std::numeric_limits<float>::infinity()})
    expect_refused([&](auto& o) { o.learning_rate = rate; }, "--lr");
  for (const float beta : {-0.1F, 1.0F, std::nanf("")}) expect_refused([&](auto& o) { o.beta1 = beta; }, "--beta1");
  for (const float beta : {-0.1F, 1.0F}) expect_refused([&](auto& o) { o.beta2 = beta; }, "--beta2");
  for (const float epsilon : {0.0F, -1.0F, 2.0F}) expect_refused([&](auto& o) { o.epsilon = epsilon; }, "--epsilon");
  for (const int steps : {0, -1, 101}) expect_refused([&](auto& o) { o.discriminator_steps = steps; }, "--d-steps");
  for (const float decay : {-0.1F, 1.0F}) expect_refused([&](auto& o) { o.average_decay = decay; }, "--ema");
  expect_refused([](auto& o) { o.loss = "wasserstein"; }, "--loss");
  for (const int threads : {-1, kMaxThreads + 1}) expect_refused([&](auto& o) { o.threads = threads; }, "--threads");
  expect_refused([](auto& o) { o.model = "resnet"; }, "--model");
}

TEST(TrainOptions, TheCudaBackendIsAnErrorNotASilentFallback) {
  TrainOptions options;
  options.backend = "cuda";
  if (count_gpus().count == 0) {
    EXPECT_THAT([&] { make_backend(options); }, ThrowsMessage<ConfigError>(HasSubstr("--backend: found cuda")));
  }
  options.backend = "tpu";
  EXPECT_THAT([&] { check(options); },
              ThrowsMessage<ConfigError>(HasSubstr("--backend: found tpu, expected auto, cpu, cuda")));
  options.backend = "cpu";
  options.precision = "bf16";
  EXPECT_THAT([&] { check(options); },
              ThrowsMessage<ConfigError>(HasSubstr("--precision: found bf16, expected fp32 with --backend cpu")));
  options.backend = "auto";
  if (count_gpus().count > 0) return;
  EXPECT_NE(make_backend(options), nullptr);  // what is only described or drawn
  EXPECT_THAT([&] { Trainer trainer(options); },
              ThrowsMessage<ConfigError>(HasSubstr("--precision: found bf16, expected fp32: there is no GPU here")));
}

TEST(Trainer, NeedsImagesOfTheModelsSizeAndAsManyAsABatch) {
  const Scratch scratch;
  TrainOptions options = small_training(scratch, 20);
  EXPECT_THAT([&] { Trainer{options}; },
              ThrowsMessage<ConfigError>(HasSubstr("--batch: found 32, expected at most the 20 images")));
  Images wide{40, 28, 29, std::vector<std::uint8_t>(40 * 28 * 29)};
  scratch.write("train-images-idx3-ubyte", write_idx_images(wide));
  EXPECT_THAT([&] { Trainer{options}; },
              ThrowsMessage<ConfigError>(HasSubstr("found images of 28x29x1, expected 28x28x1")));
}

TEST(Trainer, StopsWhenALossIsNotFinite) {
  const Scratch scratch;
  Trainer trainer(small_training(scratch, 40));
  const std::vector<float> poison{std::nanf("")};
  trainer.ops().write(trainer.gan().discriminator.parameter_data(), poison);
  EXPECT_THAT([&] { trainer.run(5); }, ThrowsMessage<Failure>(HasSubstr("step 1: the losses are no longer finite")));
}

TEST(Trainer, RunsInPiecesAsInOne) {
  const Scratch scratch;
  const TrainOptions options = small_training(scratch, 100);
  Trainer whole(options), pieces(options);
  std::vector<std::int64_t> reported;
  pieces.run(2);
  const RunResult rest = pieces.run(3, [&](const Progress& progress) { reported.push_back(progress.step); });
  EXPECT_EQ(rest.steps, 3);
  EXPECT_GT(rest.seconds, 0);
  EXPECT_EQ(reported, (std::vector<std::int64_t>{3, 4, 5}));
  EXPECT_EQ(whole.run(5).losses.generator, rest.losses.generator);
}

TEST(Describe, AgreesWithTheModel) {
  TrainOptions options;
  options.batch = 64;
  const Description description = describe(options);
  const auto json = Json::parse(to_json(description));
  EXPECT_EQ(json.at("parameters").at("generator"), 2'051'384);
  EXPECT_EQ(json.at("parameters").at("discriminator"), 233'985);
  EXPECT_NEAR(json.at("flops_per_step").get<double>(), 64 * 0.015079e9, 64 * 500);
  std::int64_t parameters = 0;
  for (const auto& layer : json.at("layers")) parameters += layer.at("parameters").get<std::int64_t>();
  EXPECT_EQ(parameters, 2'051'384 + 233'985);
  // Arrays are padded to 16 floats: the bias and the two of the batch norm of 1,000 units, and the bias of one output.
  EXPECT_EQ(json.at("memory_bytes").at("gradients"), 4 * (parameters + 3 * 8 + 15));
  EXPECT_THAT(to_table(description), AllOf(HasSubstr("dense 50 -> 1200"), HasSubstr("2051384 trainable")));
}

}  // namespace
}  // namespace ganymede::kernel
