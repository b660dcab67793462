// Models that see labels, and variational autoencoders: their operations, the gradients of their whole losses by finite
// differences, and their trainings.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "common/errors.hpp"
#include "kernel/models/models.hpp"
#include "kernel/samples.hpp"
#include "kernel/weights.hpp"
#include "scratch.hpp"
#include "still_model.hpp"
#include "test_device.hpp"

namespace ganymede::kernel {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

class CodesTest : public OperationsTest {};
INSTANTIATE_TEST_SUITE_P(AllBackends, CodesTest, testing::ValuesIn(backends()), testing::PrintToStringParamName());

TEST_P(CodesTest, AppendedChannelsAreTheSameAtEveryPosition) {
  const int channels = 3, positions = 4, classes = 2, batch = 5;
  const Tensor x = device_.tensor(channels * positions, batch), more = device_.tensor(classes, batch);
  const Tensor y = device_.tensor((channels + classes) * positions, batch), back = device_.tensor(x.features, batch);
  const auto xs = device_.rows(x, channels), labels = device_.rows(more);
  for (const bool zero : {false, true}) {
    ops_.append_channels(y, x, zero ? Tensor{nullptr, classes, batch} : more);
    const auto ys = device_.rows(y, channels + classes);
    for (std::size_t i = 0; i < xs.size(); ++i) EXPECT_EQ(ys[i], xs[i]);
    for (std::size_t i = xs.size(); i < ys.size(); ++i) {
      const std::size_t row = (i - xs.size()) / batch;
      EXPECT_EQ(ys[i], zero ? 0 : labels[row / positions * batch + i % batch]) << i;
    }
  }
  ops_.leading_channels(back, y, positions);
  EXPECT_EQ(device_.rows(back, channels), xs);
}

TEST_P(CodesTest, SquaredErrorAndItsGradient) {
  const Tensor y = device_.tensor(6, 5), x = device_.tensor(6, 5), dy = device_.tensor(6, 5);
  float* loss = device_.floats(1);
  ops_.squared_error(loss, dy, y, x, 1.5F);
  const auto ys = device_.values(y), xs = device_.values(x), found = device_.values(dy);
  double expected = 0;
  for (std::size_t i = 0; i < ys.size(); ++i) {
    expected += 1.5 * (ys[i] - xs[i]) * (ys[i] - xs[i]) / 5;
    EXPECT_NEAR(found[i], 3 * (ys[i] - xs[i]) / 5, 1e-6 + device_.stored(1));
  }
  EXPECT_NEAR(device_.values(loss, 1)[0], expected, 1e-5);
}

TEST_P(CodesTest, CodesAreSampledAndTheirGradientsAreThoseOfTheDefinition) {
  const int size = 3, batch = 4;
  const Tensor code = device_.tensor(2 * size, batch), noise = device_.tensor(size, batch);
  const Tensor z = device_.tensor(size, batch), dz = device_.tensor(size, batch),
               d_code = device_.tensor(2 * size, batch);
  float* loss = device_.floats(1);
  ops_.sample_code(z, code, noise);
  ops_.sample_code_backward(loss, d_code, dz, code, noise);
  const auto c = device_.rows(code), e = device_.rows(noise), passed = device_.rows(dz);
  // The loss is a projection of z along dz, and the divergence of normal(mean, variance) from normal(0, 1).
  const auto z_of = [&](const std::vector<double>& of, std::size_t i) {
    return of[i] + std::exp(of[size * batch + i] / 2) * e[i];
  };
  const auto divergence = [&](const std::vector<double>& of) {
    double sum = 0;
    for (std::size_t i = 0; i < size * batch; ++i) {
      const double mean = of[i], log_variance = of[size * batch + i];
      sum += 0.5 * (mean * mean + std::exp(log_variance) - log_variance - 1) / batch;
    }
    return sum;
  };
  const auto all = [&](const std::vector<double>& of) {
    double sum = divergence(of);
    for (std::size_t i = 0; i < size * batch; ++i) sum += passed[i] * z_of(of, i);
    return sum;
  };
  const auto zs = device_.rows(z), found = device_.rows(d_code);
  for (std::size_t i = 0; i < zs.size(); ++i) EXPECT_NEAR(zs[i], z_of(c, i), 1e-5 + device_.stored(2));
  EXPECT_NEAR(device_.values(loss, 1)[0], divergence(c), 1e-5);
  for (std::size_t i = 0; i < c.size(); ++i) {
    auto above = c, below = c;
    above[i] += 1e-4;
    below[i] -= 1e-4;
    EXPECT_NEAR(found[i], (all(above) - all(below)) / 2e-4, 1e-5 + device_.stored(1)) << i;
  }
}

class WholeLoss : public testing::TestWithParam<BackendCase> {};
INSTANTIATE_TEST_SUITE_P(AllBackends, WholeLoss, testing::ValuesIn(fp32_backends()),
                         [](const auto& instance) { return instance.param.name; });

TEST_P(WholeLoss, OfAnAutoencoderHasTheGradientsOfBothNetworks) {
  TestDevice device(GetParam(), 3);
  StillModel still(device.ops(), {.model = "tiny",
                                  .image = {2, 3, 1},
                                  .dense = true,
                                  .darkest = -1,
                                  .step = StepKind::variational,
                                  .generator = {"decoder", chain(2, 4, 6)},
                                  .discriminator = {"encoder", chain(6, 4, 4)}});
  const auto sum = [](const Losses& losses) { return losses.discriminator + losses.generator; };
  expect_gradient(still, still.gan.generator, device, sum);
  expect_gradient(still, still.gan.discriminator, device, sum);
}

TEST_P(WholeLoss, OfAConditionalModelHasTheGradientsOfBothNetworks) {
  TestDevice device(GetParam(), 3);
  const auto labels = std::make_shared<Tensor>();
  const auto seeing = [&](int inputs, int outputs) {
    Layers layers = chain(inputs + 3, 4, outputs);
    layers.insert(layers.begin(), labelled("label", inputs, 1, 3, labels));
    return layers;
  };
  StillModel still(device.ops(), {.model = "tiny",
                                  .image = {2, 3, 1},
                                  .dense = true,
                                  .darkest = -1,
                                  .classes = 3,
                                  .labels = labels,
                                  .generator = {"generator", seeing(2, 6)},
                                  .discriminator = {"discriminator", seeing(6, 1)}});
  expect_gradient(still, still.gan.generator, device, [](const Losses& losses) { return losses.generator; });
  expect_gradient(still, still.gan.discriminator, device, [](const Losses& losses) { return losses.discriminator; });
}

TrainOptions training_with_labels(const Scratch& scratch, const char* model) {
  TrainOptions options = small_training(scratch, 40);
  scratch.write("train-labels-idx1-ubyte", write_idx_labels(draw_glyphs(40, 7).labels));
  options.model = model;
  options.batch = 8;
  return options;
}

TEST(LabelledTraining, AndAnAutoencodersGoOnBitForBitFromACheckpoint) {
  for (const char* model : {"cgan-28", "vae-28"}) {
    const Scratch scratch;
    const TrainOptions options = training_with_labels(scratch, model);
    Trainer whole(options), second(options);
    whole.run(2);
    second.restore(whole.checkpoint(), "x");
    const Losses expected = whole.run(3).losses, found = second.run(3).losses;
    EXPECT_EQ(found.generator, expected.generator) << model;
    EXPECT_TRUE(write_weights(second.gan(), second.ops()) == write_weights(whole.gan(), whole.ops())) << model;
  }
}

TEST(LabelledTraining, KnowsItsDataByTheLabelsToo) {
  const Scratch scratch;
  const TrainOptions options = training_with_labels(scratch, "cgan-28");
  Trainer first(options);
  const SafeTensors begun = first.checkpoint();
  scratch.write("train-labels-idx1-ubyte", write_idx_labels(std::vector<std::uint8_t>(40, 1)));
  Trainer other(options);
  EXPECT_THAT([&] { other.restore(begun, "x"); }, ThrowsMessage<ConfigError>(HasSubstr("of data")));
}

TEST(LabelledTraining, GivesEachImageItsClass) {
  const std::vector<std::uint8_t> labels{2, 0, 1, 1};
  const auto read = [](std::uint32_t index, std::uint8_t* out) { *out = static_cast<std::uint8_t>(10 + index); };
  for (const int prefetch : {0, 2}) {
    Loader loader(4, 1, read, 2, 1, {.prefetch = prefetch}, {}, {labels, 3});
    for (int batch = 0; batch < 6; ++batch) {
      const auto bytes = loader.next();
      ASSERT_EQ(bytes.size(), 2U + 2U * 3U);
      for (std::size_t i = 0; i < 2; ++i)
        for (std::size_t c = 0; c < 3; ++c) EXPECT_EQ(bytes[2 + 3 * i + c], labels[bytes[i] - 10U] == c ? 255 : 0);
    }
  }
}

TEST(LabelledTraining, RefusesDataWithoutLabelsAndUnknownClasses) {
  const Scratch scratch;
  TrainOptions options = training_with_labels(scratch, "cgan-28");
  scratch.write("train-labels-idx1-ubyte", write_idx_labels(std::vector<std::uint8_t>(40, 10)));
  EXPECT_THAT([&] { Trainer{options}; },
              ThrowsMessage<ConfigError>(HasSubstr("image 0: found class 10, expected 0 to 9 for cgan-28")));
  std::filesystem::remove(scratch.file("train-labels-idx1-ubyte"));
  EXPECT_THAT([&] { Trainer{options}; },
              ThrowsMessage<ConfigError>(AllOf(HasSubstr("--dataset: "), HasSubstr("found images without labels"))));
}

TEST(LabelledTraining, DrawsTheClassesThatAreAskedFor) {
  const Scratch scratch;
  Trainer trainer(training_with_labels(scratch, "cgan-28"));
  Gan& gan = trainer.gan();
  TensorOps& ops = trainer.ops();
  const auto pixels = static_cast<std::ptrdiff_t>(gan.image.pixels());
  const auto mixed = sample_images(gan, ops, 13, 9), sevens = sample_images(gan, ops, 13, 9, 7);
  // Image 4 of seed 13 has class 17 modulo 10; the others of the seven have another class than theirs.
  for (std::ptrdiff_t i = 0; i < 9; ++i)
    EXPECT_EQ(std::equal(mixed.begin() + i * pixels, mixed.begin() + (i + 1) * pixels, sevens.begin() + i * pixels),
              i == 4)
        << i;
  gan.place_classes(ops, [](int image) { return image; });
  std::vector<float> labels(gan.labels->size());
  ops.read_rows(labels, *gan.labels, gan.classes);
  for (std::size_t i = 0; i < labels.size(); ++i) EXPECT_EQ(labels[i], i / 8 == i % 8 ? 1 : 0) << i;
}

TEST(Autoencoder, HasNoAdversarysOptions) {
  TrainOptions options;
  options.model = "vae-28";
  options.loss = "hinge";
  EXPECT_THAT([&] { check(options); },
              ThrowsMessage<ConfigError>(HasSubstr("--loss: found hinge, expected none: vae-28 has no adversary")));
  options.loss = "";
  options.discriminator_steps = 2;
  EXPECT_THAT([&] { check(options); }, ThrowsMessage<ConfigError>(HasSubstr("--d-steps: found 2, expected 1")));
}

TEST(Autoencoder, HasATraceOfItsOwnPhases) {
  const Scratch scratch;
  TrainOptions options = training_with_labels(scratch, "vae-28");
  options.trace = true;
  Trainer trainer(options);
  const Work before = trainer.ops().work();
  trainer.run(1);
  EXPECT_EQ((trainer.ops().work() - before).flops, trainer.gan().step_flops_per_image() * options.batch);
  const traces::StepTrace trace = trainer.trace(0);
  std::vector<std::string> phases;
  for (const auto& phase : trace.batches[0].phases) phases.push_back(phase.name);
  EXPECT_THAT(phases, testing::ElementsAre("load", "copy", "encoder.forward", "decoder.forward", "decoder.backward",
                                           "encoder.backward", "decoder.update", "encoder.update"));
  for (const char* network : {"encoder", "decoder"}) {
    std::int64_t bytes = 0;
    for (const auto& bucket : trace.batches[0].buckets)
      if (bucket.network == network) {
        bytes += bucket.bytes;
        EXPECT_EQ(bucket.after_phase, std::string(network) + ".backward");
      }
    EXPECT_EQ(bytes, trace.networks.at(network).gradient_bytes) << network;
  }
}

}  // namespace
}  // namespace ganymede::kernel
