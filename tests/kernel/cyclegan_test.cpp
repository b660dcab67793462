// Translations between two domains of images: their operations, the gradients of the whole loss by finite differences,
// their data, and their trainings.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "common/errors.hpp"
#include "kernel/models/models.hpp"
#include "kernel/samples.hpp"
#include "kernel/session/draw_images.hpp"
#include "kernel/session/session.hpp"
#include "kernel/weights.hpp"
#include "scratch.hpp"
#include "still_model.hpp"
#include "test_device.hpp"

namespace ganymede::kernel {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

class TranslationTest : public OperationsTest {};
INSTANTIATE_TEST_SUITE_P(AllBackends, TranslationTest, testing::ValuesIn(backends()),
                         testing::PrintToStringParamName());

// More images than the CPU's loops take at once. The mean is far from zero, where sums of squares would cancel.
TEST_P(TranslationTest, InstanceNormIsThatOfEachImageAlone) {
  const int channels = 2, positions = 6, batch = 70;
  const Tensor x = device_.tensor(channels * positions, batch, 2, 3), y = device_.tensor(x.features, batch);
  const Tensor dy = device_.tensor(x.features, batch);
  float* moments = device_.floats(2U * channels * batch);
  const auto xs = device_.rows(x, channels), before = device_.rows(dy, channels);
  ops_.instance_norm_leaky_forward(y, x, moments, channels, 0.2F);
  ops_.instance_norm_leaky_backward(dy, x, moments, channels, 0.2F);
  const auto ys = device_.rows(y, channels), after = device_.rows(dy, channels);
  for (int c = 0; c < channels; ++c)
    for (int i = 0; i < batch; ++i) {
      const auto at = [&](int p) {
        const int place = (c * positions + p) * batch + i;
        return static_cast<std::size_t>(place);
      };
      double mean = 0, variance = 0, sum = 0, dot = 0;
      for (int p = 0; p < positions; ++p) mean += xs[at(p)] / positions;
      for (int p = 0; p < positions; ++p) variance += (xs[at(p)] - mean) * (xs[at(p)] - mean) / positions;
      const double deviation = std::sqrt(variance + 1e-5);
      const auto n = [&](int p) { return (xs[at(p)] - mean) / deviation; };
      const auto dn = [&](int p) { return before[at(p)] * (n(p) > 0 ? 1 : 0.2); };
      for (int p = 0; p < positions; ++p) sum += dn(p) / positions, dot += dn(p) * n(p) / positions;
      for (int p = 0; p < positions; ++p) {
        EXPECT_NEAR(ys[at(p)], n(p) > 0 ? n(p) : 0.2 * n(p), 1e-4 + device_.stored(2));
        EXPECT_NEAR(after[at(p)], (dn(p) - sum - n(p) * dot) / deviation, 2e-4 + device_.stored(8)) << c << " " << i;
      }
    }
}

TEST_P(TranslationTest, AbsoluteErrorAndItsGradient) {
  const Tensor y = device_.tensor(6, 5), x = device_.tensor(6, 5), dy = device_.tensor(6, 5);
  float* loss = device_.floats(1);
  device_.set(y, 3, device_.get(x, 3));
  ops_.absolute_error(loss, dy, y, x, 1.5F);
  const auto ys = device_.values(y), xs = device_.values(x), found = device_.values(dy);
  double expected = 0;
  for (std::size_t i = 0; i < ys.size(); ++i) {
    expected += 1.5 * std::abs(ys[i] - xs[i]) / 5;
    const double sign = ys[i] > xs[i] ? 1 : ys[i] < xs[i] ? -1 : 0;
    EXPECT_NEAR(found[i], sign * 1.5 / 5, 1e-6 + device_.stored(1)) << i;
  }
  EXPECT_NEAR(device_.values(loss, 1)[0], expected, 1e-5);
}

class WholeCycle : public testing::TestWithParam<BackendCase> {};
INSTANTIATE_TEST_SUITE_P(AllBackends, WholeCycle, testing::ValuesIn(fp32_backends()),
                         [](const auto& instance) { return instance.param.name; });

TEST_P(WholeCycle, HasTheGradientsOfBothGeneratorsAndBothDiscriminators) {
  TestDevice device(GetParam(), 3);
  StillModel still(device.ops(), {.model = "tiny",
                                  .image = {2, 3, 1},
                                  .dense = true,
                                  .darkest = -1,
                                  .step = StepKind::cyclic,
                                  .generator = {"generator", chain(6, 4, 6), chain(6, 4, 6)},
                                  .discriminator = {"discriminator", chain(6, 4, 2), chain(6, 4, 2)}});
  still.loss = AdversarialLoss::least_squares;
  expect_gradient(still, still.gan.generator, device, [](const Losses& losses) { return losses.generator; });
  expect_gradient(still, still.gan.discriminator, device, [](const Losses& losses) { return losses.discriminator; });
}

TEST_P(WholeCycle, OfRestoredImagesHasTheGradientsOfBothNetworks) {
  TestDevice device(GetParam(), 3);
  StillModel still(device.ops(), {.model = "tiny",
                                  .image = {2, 4, 1},
                                  .darkest = -1,
                                  .reduction = 2,
                                  .generator = {"generator", chain(2, 4, 8)},
                                  .discriminator = {"discriminator", chain(8, 4, 2)}});
  still.loss = AdversarialLoss::least_squares;
  expect_gradient(still, still.gan.generator, device, [](const Losses& losses) { return losses.generator; });
  expect_gradient(still, still.gan.discriminator, device, [](const Losses& losses) { return losses.discriminator; });
}

/// Folders A and B of glyphs in colour, of different sizes.
TrainOptions training_of_domains(const Scratch& scratch, int of_a = 10, int of_b = 7) {
  for (const auto& [folder, count, seed] : {std::tuple{"A", of_a, 3U}, std::tuple{"B", of_b, 4U}}) {
    std::filesystem::create_directories(scratch.file(folder));
    scratch.write(std::string(folder) + "/train-images-idx3-ubyte",
                  write_idx_images(draw_glyphs(count, seed, {32, 32, 3}).images));
  }
  TrainOptions options;
  options.model = "cyclegan-32";
  options.dataset = scratch.path().string();
  options.batch = 2;
  options.threads = 2;
  return options;
}

TEST(Cyclegan, HasItsAuthorsLayersWithLessOfThem) {
  const Gan gan = find_model("cyclegan-32").build_default();
  const auto filters = [](std::size_t in, std::size_t out, std::size_t taps) { return in * out * taps; };
  EXPECT_EQ(gan.generator.parameter_count(), 2 * (2 * filters(3, 16, 49) + 2 * filters(16, 32, 16) +
                                                  2 * filters(32, 64, 16) + 6 * filters(64, 64, 9) + 3));
  EXPECT_EQ(gan.discriminator.parameter_count(),
            2 * (filters(3, 32, 16) + 32 + filters(32, 64, 16) + filters(64, 1, 16) + 1));
  EXPECT_EQ(gan.generator.parameters().front().name, "ab.conv1.weight");
  EXPECT_EQ(gan.discriminator.parameters().back().name, "a.bias3.bias");
}

TEST(Cyclegan, HasATraceOfItsOwnPhases) {
  const Scratch scratch;
  TrainOptions options = training_of_domains(scratch);
  options.trace = true;
  for (const bool recompute : {false, true}) {
    options.recompute = recompute;
    Trainer trainer(options);
    const Work before = trainer.ops().work();
    trainer.run(1);
    EXPECT_EQ((trainer.ops().work() - before).flops, trainer.gan().step_flops_per_image() * options.batch);
    const traces::StepTrace trace = trainer.trace(0);
    std::vector<std::string> phases;
    for (const auto& phase : trace.batches[0].phases) phases.push_back(phase.name);
    EXPECT_THAT(phases,
                ElementsAre("load", "copy", "cycle_b.forward", "cycle_b.judge", "cycle_b.backward", "cycle_a.forward",
                            "cycle_a.judge", "cycle_a.backward", "generator.update", "discriminator.forward_real",
                            "discriminator.backward_real", "discriminator.forward_fake", "discriminator.backward_fake",
                            "discriminator.update"));
    for (const auto& [network, after] :
         {std::pair{"generator", "cycle_a.backward"}, std::pair{"discriminator", "discriminator.backward_fake"}}) {
      std::int64_t bytes = 0;
      for (const auto& bucket : trace.batches[0].buckets)
        if (bucket.network == network) {
          bytes += bucket.bytes;
          EXPECT_EQ(bucket.after_phase, after);
        }
      EXPECT_EQ(bytes, trace.networks.at(network).gradient_bytes) << network;
    }
  }
}

TEST(Cyclegan, GoesOnBitForBitFromACheckpoint) {
  const Scratch scratch;
  const TrainOptions options = training_of_domains(scratch);
  Trainer whole(options), second(options);
  whole.run(2);
  const SafeTensors kept = whole.checkpoint();
  second.restore(kept, "x");
  const Losses expected = whole.run(3).losses, found = second.run(3).losses;
  EXPECT_EQ(found.generator, expected.generator);
  EXPECT_TRUE(write_weights(second.gan(), second.ops()) == write_weights(whole.gan(), whole.ops()));
  // Other images of domain B are other data.
  scratch.write("B/train-images-idx3-ubyte", write_idx_images(draw_glyphs(7, 5, {32, 32, 3}).images));
  Trainer other(options);
  EXPECT_THAT([&] { other.restore(kept, "x"); }, ThrowsMessage<ConfigError>(HasSubstr("of data")));
}

TEST(Cyclegan, ForgetsNoActivationThatIsComputedAgain) {
  const Scratch scratch;
  TrainOptions options = training_of_domains(scratch);
  Trainer plain(options);
  options.recompute = true;
  Trainer again(options);
  for (int step = 0; step < 3; ++step) {
    const Losses expected = plain.step(), found = again.step();
    EXPECT_EQ(found.discriminator, expected.discriminator) << step;
    EXPECT_EQ(found.generator, expected.generator) << step;
  }
}

double mean_of(const Images& images) {
  return std::accumulate(images.pixels.begin(), images.pixels.end(), 0.0) / static_cast<double>(images.pixels.size());
}

TEST(Domains, OfABuiltInSetAreItsHalvesOneInNegative) {
  const Dataset all = open_dataset("builtin", {32, 32, 3}), first = open_domains("builtin", {32, 32, 3});
  const Images &a = first.images, &b = first.other->images;
  ASSERT_EQ(a.count + b.count, all.images.count);
  ASSERT_EQ(a.pixels.size() + b.pixels.size(), all.images.pixels.size());
  EXPECT_TRUE(std::equal(a.pixels.begin(), a.pixels.end(), all.images.pixels.begin()));
  EXPECT_EQ(b.pixels.back(), 255 - all.images.pixels.back());
  EXPECT_EQ(b.pixels.front(), 255 - all.images.pixels[a.pixels.size()]);
  EXPECT_GT(mean_of(b), mean_of(a) + 50);
}

TEST(Domains, AreTwoFoldersOfWhichTheSmallerIsUsedMoreOften) {
  const Scratch scratch;
  TrainOptions options = training_of_domains(scratch, 3, 5);
  Trainer trainer(options);
  EXPECT_EQ(trainer.dataset().count(), 5);
  EXPECT_EQ(trainer.dataset().images.count, 3);
  trainer.run(3);  // two batches of 2 in an epoch of 5
  EXPECT_EQ(trainer.epoch(), 2);
  std::filesystem::rename(scratch.file("A"), scratch.file("trainA"));
  std::filesystem::rename(scratch.file("B"), scratch.file("trainB"));
  EXPECT_EQ(open_domains(options.dataset, {32, 32, 3}).fingerprint(), trainer.dataset().fingerprint());
  std::filesystem::remove_all(scratch.file("trainB"));
  EXPECT_THAT([&] { Trainer{options}; },
              ThrowsMessage<ConfigError>(HasSubstr("found neither the folders A and B nor trainA and trainB")));
}

TEST(Domains, FollowOneAnotherInABatch) {
  const auto first = [](std::uint32_t index, std::uint8_t* out) { *out = static_cast<std::uint8_t>(10 + index); };
  const auto second = [](std::uint32_t index, std::uint8_t* out) { *out = static_cast<std::uint8_t>(100 + index); };
  for (const int prefetch : {0, 2}) {
    Loader loader(6, 1, first, 3, 1, {.prefetch = prefetch}, {}, {.other = second});
    for (int batch = 0; batch < 5; ++batch) {
      const auto bytes = loader.next();
      ASSERT_EQ(bytes.size(), 6U);
      for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(bytes[i] + 90, bytes[i + 3]);
    }
  }
}

/// The mean of what the generator's first chain makes of the domain's first images, from 0 to 255.
double mean_translated(Trainer& trainer) {
  Gan& gan = trainer.gan();
  std::vector<float> values(gan.real.size());
  trainer.ops().read(values, gan.generator.infer(trainer.ops(), gan.real));
  return 127.5 + 127.5 * std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

TEST(Cyclegan, MovesImagesTowardsTheOtherDomain) {
  TrainOptions options;
  options.model = "cyclegan-32";
  options.batch = 2;
  options.threads = 2;
  Trainer trainer(options);
  const double wanted = mean_of(trainer.dataset().other->images);
  trainer.step();
  const double before = std::abs(mean_translated(trainer) - wanted);
  trainer.run(40);
  EXPECT_LT(std::abs(mean_translated(trainer) - wanted), 0.7 * before) << before;
}

TEST(Cyclegan, ShowsTranslationsThereAndBack) {
  const Scratch scratch;
  Trainer trainer(training_of_domains(scratch));
  int reads = 0;
  const auto read = [&](int domain, int index, std::uint8_t* out) {
    std::fill_n(out, 32 * 32 * 3, static_cast<std::uint8_t>(domain == 0 ? 40 * index : 255));
    ++reads;
  };
  const std::string png = translation_grid(trainer.gan(), trainer.ops(), read, 3);
  EXPECT_EQ(reads, 8);  // two batches of 2 images for each domain
  const auto file = scratch.write("grid.png", png);
  const ImageShape whole{3 * 33 + 1, 6 * 33 + 1, 3};
  std::vector<std::uint8_t> pixels(static_cast<std::size_t>(whole.pixels()));
  const PictureStore store({file}, whole, false);
  store.read(0, pixels.data());               // [channel x row x column]
  const auto at = [&](int row, int column) {  // the middle of a cell
    const int place = (row * 33 + 16) * whole.width + column * 33 + 16;
    return pixels[static_cast<std::size_t>(place)];
  };
  for (int row = 0; row < 3; ++row) {
    EXPECT_EQ(at(row, 0), 40 * row);
    EXPECT_EQ(at(row, 3), 255);
    EXPECT_NE(at(row, 1), at(row, 0));
  }
}

TEST(Srgan, LearnsToRestoreImages) {
  TrainOptions options;
  options.model = "srgan-32";
  options.batch = 4;
  options.threads = 2;
  Trainer trainer(options);
  const double before = trainer.step().generator;
  EXPECT_LT(trainer.run(40).losses.generator, 0.6 * before);
  const auto read = [&](int, int index, std::uint8_t* out) {
    trainer.dataset().read(static_cast<std::uint32_t>(index), out);
  };
  EXPECT_FALSE(translation_grid(trainer.gan(), trainer.ops(), read, 3).empty());
}

TEST(Cyclegan, RefusesWhatItHasNot) {
  TrainOptions options;
  options.model = "cyclegan-32";
  const auto refused = [&](const char* message) {
    EXPECT_THAT([&] { check(options); }, ThrowsMessage<ConfigError>(HasSubstr(message)));
  };
  options.loss = "r1";
  refused("--loss: found r1, expected one without a gradient penalty for cyclegan-32");
  options.loss = "least-squares";
  options.discriminator_steps = 2;
  refused("--d-steps: found 2, expected 1: cyclegan-32 updates both networks once");
  SessionOptions session;
  session.train.model = "cyclegan-32";
  session.quality = 100;
  EXPECT_THAT([&] { check(session, ""); },
              ThrowsMessage<ConfigError>(HasSubstr("--quality: found 100, expected none")));
}

TEST(Cyclegan, DrawsNothingFromRandomNumbers) {
  const Scratch scratch;
  Trainer trainer(training_of_domains(scratch));
  const Checkpoint checkpoint{"run/1", trainer.checkpoint()};
  EXPECT_THAT([&] { draw_images(checkpoint, {}, 1, 1); },
              ThrowsMessage<ConfigError>(HasSubstr("run/1: found cyclegan-32, which makes images of images")));
}

}  // namespace
}  // namespace ganymede::kernel
