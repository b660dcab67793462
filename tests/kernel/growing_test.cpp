// Progressively growing models: the stages of a training, what it keeps from stage to stage, what its traces and
// checkpoints contain; and the gradient penalty with which they are trained.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>

#include "common/errors.hpp"
#include "kernel/data/dataset.hpp"
#include "kernel/data/picture.hpp"
#include "kernel/models/models.hpp"
#include "kernel/samples.hpp"
#include "kernel/train.hpp"
#include "kernel/weights.hpp"
#include "scratch.hpp"
#include "support/when.hpp"
#include "test_device.hpp"

namespace ganymede::kernel {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

TrainOptions growing(const Scratch& scratch, const char* model = "progressive-gan", int batch = 4) {
  scratch.write("train-images-idx3-ubyte", write_idx_images(draw_glyphs(20, 7, {32, 32, 3}).images));
  TrainOptions options;
  options.model = model;
  options.dataset = scratch.path().string();
  options.image = "32x32x3";
  options.batch = batch;
  options.threads = 2;
  options.stage_steps = 2;
  return options;
}

TEST(TrainingStage, StaysAndFadesInTurnAndThenStaysForever) {
  const auto at = [](std::int64_t steps) { return stage_after(find_model("progressive-gan"), {16, 16, 3}, steps, 10); };
  EXPECT_EQ(at(0).growth, (Growth{0, false}));
  EXPECT_EQ(at(9).growth, (Growth{0, false}));
  EXPECT_EQ(at(10).growth, (Growth{1, true}));
  EXPECT_EQ(at(20).growth, (Growth{1, false}));
  EXPECT_EQ(at(35).growth, (Growth{2, true}));
  EXPECT_EQ(at(40).growth, (Growth{2, false}));
  EXPECT_EQ(at(1'000'000'000).growth, (Growth{2, false}));
  EXPECT_EQ(at(10).ends_after, 20);
  EXPECT_EQ(at(40).ends_after, -1);
  // The share of the new layers rises from near 0 to near 1.
  EXPECT_FLOAT_EQ(at(10).share, 1.0F / 11);
  EXPECT_FLOAT_EQ(at(19).share, 10.0F / 11);
  EXPECT_FLOAT_EQ(at(20).share, 1);
}

TEST(Shrink, MakesEveryPixelTheMeanOfItsBlock) {
  Images images{1, 2, 4, {0, 10, 100, 100, 20, 31, 100, 104}, 1};
  EXPECT_THAT(shrink(images, {1, 2, 1}).pixels, ElementsAre(15, 101));
  images = {1, 2, 2, {0, 10, 100, 100, 20, 31, 100, 104}, 1, 2};
  EXPECT_THAT(shrink(images, {1, 1, 1, 1}).pixels, ElementsAre(58));
}

TEST(MovingClips, GlideAndComeBackAtTheOtherEdge) {
  const Images images = draw_glyphs(4, 3, {32, 32, 3}).images;
  const Images clips = moving_clips(images, 8, 1, 4);
  EXPECT_EQ(clips.count, 8);
  bool moved = false;
  const std::size_t plane = 32 * 32;
  for (std::size_t clip = 0; clip < 8; ++clip) {
    const auto frame = [&](std::size_t channel, std::size_t f) {
      const auto begin = clips.pixels.begin() + static_cast<std::ptrdiff_t>(((clip * 3 + channel) * 4 + f) * plane);
      return std::vector<std::uint8_t>(begin, begin + static_cast<std::ptrdiff_t>(plane));
    };
    // The first frame is the image; the last frame has the same pixels at other positions.
    const auto still = images.pixels.begin() + static_cast<std::ptrdiff_t>((clip % 4) * 3 * plane);
    auto first = frame(0, 0), last = frame(0, 3);
    EXPECT_TRUE(std::equal(first.begin(), first.end(), still));
    moved = moved || first != last;
    std::sort(first.begin(), first.end());
    std::sort(last.begin(), last.end());
    EXPECT_EQ(first, last);
  }
  EXPECT_TRUE(moved);
}

TEST(GrowingTrainer, KeepsWhatItLearnedFromStageToStage) {
  const Scratch scratch;
  TrainOptions options = growing(scratch);
  options.average_decay = 0.9F;
  Trainer trainer(options);
  trainer.run(2);
  EXPECT_EQ(trainer.gan().image, (ImageShape{4, 4, 3}));
  const SafeTensors before = tensors_of(trainer.gan(), trainer.ops(), false);
  const float first_average = [&] {
    float value = 0;
    trainer.ops().read({&value, 1}, trainer.gan().average.floats());
    return value;
  }();
  trainer.restore(trainer.checkpoint(), "memory");  // which is in the stage of the last step
  EXPECT_EQ(trainer.gan().image, (ImageShape{4, 4, 3}));

  Gan grown = find_model("progressive-gan").build({32, 32, 3}, {1, true});
  grown.prepare(trainer.ops(), 4, 1, {.average = true});
  grown.take_over(trainer.gan(), trainer.ops());
  const SafeTensors after = tensors_of(grown, trainer.ops(), false);
  for (const auto& [name, tensor] : before.tensors) EXPECT_EQ(after.tensors.at(name).values, tensor.values) << name;
  EXPECT_GT(after.tensors.size(), before.tensors.size());
  float average = 0;
  trainer.ops().read({&average, 1}, grown.average.floats());
  EXPECT_EQ(average, first_average);
  EXPECT_EQ(grown.generator.updates(), 2);

  // If the new layers' share is 0, the larger images are the smaller ones, enlarged.
  *grown.share = 0;
  EXPECT_EQ(sample_images(grown, trainer.ops(), 5, 4),
            enlarge(sample_images(trainer.gan(), trainer.ops(), 5, 4), {4, 4, 3}, {8, 8, 3}));
}

TEST(GrowingTrainer, ResumesToTheSameLossesInEveryStage) {
  LONG_TEST();
  for (const char* model : {"progressive-gan", "progressive-gan-video"}) {
    const Scratch scratch;
    TrainOptions options = growing(scratch, model, 2);
    if (std::string(model) == "progressive-gan-video") options.dataset = kBuiltinDataset, options.image = "32x32x3x8";
    std::vector<Losses> losses;
    Trainer whole(options);
    for (int i = 0; i < 7; ++i) losses.push_back(whole.step());
    // Stops within a stage, at its end, while layers fade in, and at the end of that.
    const bool clips = options.dataset == kBuiltinDataset;
    for (const std::size_t stop : clips ? std::vector<std::size_t>{4} : std::vector<std::size_t>{1, 2, 3, 4, 5}) {
      Trainer first(options), second(options);
      first.run(static_cast<std::int64_t>(stop));
      second.restore(first.checkpoint(), "memory");
      for (std::size_t i = stop; i < losses.size(); ++i) {
        const Losses found = second.step();
        EXPECT_EQ(found.discriminator, losses[i].discriminator)
            << model << ", stopped after " << stop << ", step " << i;
        EXPECT_EQ(found.generator, losses[i].generator) << model << ", stopped after " << stop << ", step " << i;
      }
    }
  }
}

TEST(GrowingTrainer, TracesAnEntryForEveryStage) {
  const Scratch scratch;
  TrainOptions options = growing(scratch);
  options.stage_steps = 3;
  options.trace = true;
  Trainer trainer(options);
  trainer.run(8);
  const traces::StepTrace trace = trainer.trace(0);
  ASSERT_EQ(trace.batches.size(), 3U);
  EXPECT_EQ(trace.batches[0].stage, "4x4");
  EXPECT_EQ(trace.batches[1].stage, "8x8 fading in");
  EXPECT_EQ(trace.batches[2].stage, "8x8");
  EXPECT_EQ(trace.batches[0].wall_s.size(), 3U);
  EXPECT_EQ(trace.batches[2].wall_s.size(), 2U);
  EXPECT_EQ(trace.find_batch(4)->stage, "8x8");
  EXPECT_LT(trace.batches[0].memory_bytes.at("activations"), trace.batches[2].memory_bytes.at("activations"));
  const auto& phases = trace.batches[0].phases;
  EXPECT_TRUE(std::any_of(phases.begin(), phases.end(), [](const traces::TracePhase& phase) {
    return phase.name == "discriminator.gradient_penalty";
  }));
  for (const auto& bucket : trace.batches[0].buckets)
    EXPECT_EQ(bucket.after_phase,
              bucket.network == "generator" ? "generator.backward" : "discriminator.gradient_penalty");
  double flops = 0;
  for (const auto& phase : trace.batches[2].phases) flops += phase.flops;
  EXPECT_EQ(flops, trainer.gan().step_flops_per_image(1, true) * 4);
}

TEST(GrowingTrainer, OnlyModelsThatGrowHaveStages) {
  TrainOptions options;
  options.stage_steps = 5;
  EXPECT_THAT([&] { check(options); },
              ThrowsMessage<ConfigError>(HasSubstr("--stage-steps: found 5, expected none: mlp-gan does not grow")));
}

TEST(Clips, AreFoldersOfFramesInTheOrderOfTheirNames) {
  const Scratch scratch;
  const auto write = [&](const std::string& name, float grey) {
    std::filesystem::create_directories(scratch.file(name).parent_path());
    const std::vector<float> pixels(16, grey / 255);
    // A grid of one image has a border of one pixel.
    scratch.write(name, png_grid(pixels, {4, 4, 1}, 1, 1));
  };
  for (int i = 0; i < 5; ++i) write("Diving/v1/frame" + std::to_string(i) + ".png", static_cast<float>(10 * i));
  for (int i = 0; i < 2; ++i) write("Diving/v2/frame" + std::to_string(i) + ".png", static_cast<float>(100 + i));
  write("Rowing/v3/frame0.png", 200);
  const Images clips = PictureStore(clip_files(scratch.path(), 2), {6, 6, 1, 2}, true).decode_all();
  ASSERT_EQ(clips.count, 3);  // the folders give two clips (with one frame left over), one, and none
  const auto middle = [&](std::size_t clip, std::size_t frame) {
    return int{clips.pixels[(clip * 2 + frame) * 36 + 14]};
  };
  EXPECT_EQ(middle(0, 0), 0);
  EXPECT_EQ(middle(0, 1), 10);
  EXPECT_EQ(middle(1, 0), 20);
  EXPECT_EQ(middle(2, 1), 101);
  EXPECT_THAT([&] { clip_files(scratch.path(), 8); },
              ThrowsMessage<ConfigError>(HasSubstr("found no folder of 8 frames or more")));
  EXPECT_THAT([&] { clip_files(scratch.file("nowhere"), 8); },
              ThrowsMessage<ConfigError>(HasSubstr("found no directory")));
}

class PenaltyTest : public testing::TestWithParam<BackendCase> {};
INSTANTIATE_TEST_SUITE_P(AllBackends, PenaltyTest, testing::ValuesIn(fp32_backends()),
                         [](const auto& instance) { return instance.param.name; });

/// Compares the gradient of the penalty with respect to the weights of a critic of `layers` with finite differences of
/// the penalty, on five images.
void check_penalty_gradient(TestDevice& device, Layers layers, const char* what, float centre = 1) {
  TensorOps& ops = device.ops();
  const int batch = 5;
  Network critic("critic", std::move(layers));
  critic.keep_tangents(true);
  RandomStream initial(3, "tests/initial"), noise(4, "tests/noise");
  critic.prepare(ops, batch, initial);
  // The weights must be large compared with the steps of the finite differences.
  ops.copy(critic.parameter_data(), device.floats(critic.parameter_floats()), critic.parameter_floats());
  const Tensor x = device.tensor(critic.inputs(), batch), direction = device.tensor(critic.inputs(), batch),
               ones = device.tensor(1, batch);
  float* loss = device.floats(1);
  const auto penalty = [&] {
    RandomStream same = noise;
    critic.forward(ops, x, same);
    ops.fill(ones, 1);
    const Tensor gradient = critic.backward(ops, ones, {false, false, true}, [](std::size_t) {});
    ops.gradient_penalty(loss, direction, gradient, 10, centre);
    return device.values(loss, 1)[0];
  };
  penalty();
  critic.tangent(ops, direction);
  ops.fill(ones, 1);
  ops.fill({critic.gradient_data(), static_cast<int>(critic.parameter_floats()), 1}, 0);
  critic.tangent_backward(ops, ones, [](std::size_t) {});
  const auto found = device.values(critic.gradient_data(), critic.parameter_floats());
  double largest = 0, difference = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const double expected = device.slope(critic.parameter_data(), i, 1.0F / 64, penalty);
    largest = std::max(largest, std::abs(expected));
    difference = std::max(difference, std::abs(found[i] - expected));
  }
  EXPECT_GT(largest, 0.1) << what;
  EXPECT_LT(difference, 5e-3 * largest) << what;
}

// Curved layers (batch norm, minibatch standard deviation) stand between layers that are not.
TEST_P(PenaltyTest, ItsGradientIsThatOfThePenalty) {
  TestDevice device(GetParam(), 4);
  Layers dense_layers;
  dense_layers.push_back(dense("first", 6, 5));
  dense_layers.push_back(leaky_dropout("dropout", 5, 1.0F, 0.3F));
  dense_layers.push_back(dense("last", 5, 1));
  check_penalty_gradient(device, std::move(dense_layers), "dense");

  Layers dropped;
  dropped.push_back(dense("first", 6, 5));
  dropped.push_back(dropped_logit("last", 5, 1.0F, 0.3F));
  check_penalty_gradient(device, std::move(dropped), "dropped logit");

  Layers normal;
  normal.push_back(convolution("first", {2, 4, 4, 3, 3, 1, 1}));
  normal.push_back(batch_norm_leaky("norm", {.channels = 3, .positions = 16, .deviation = 0.5F}, 1));
  normal.push_back(convolution("middle", {3, 4, 4, 2, 4, 2, 1}));
  normal.push_back(leaky("leaky", 8, 1));
  normal.push_back(convolution("last", {2, 2, 2, 1, 2, 1, 0}));
  check_penalty_gradient(device, std::move(normal), "batch norm");

  Layers main, skip, grown;
  main.push_back(convolution("rgb4", {2, 4, 4, 3, 1, 1, 0}, 1));
  main.push_back(bias_leaky("rgb4", 3, 16, 0.7F, 1));
  main.push_back(downsample("down4", {.channels = 3, .height = 4, .width = 4}));
  skip.push_back(downsample("down4.rgb", {.channels = 2, .height = 4, .width = 4}));
  skip.push_back(convolution("rgb2", {2, 2, 2, 3, 1, 1, 0}, 1));
  grown.push_back(faded(std::move(main), std::move(skip), std::make_shared<float>(0.4F)));
  grown.push_back(convolution("conv", {3, 2, 2, 3, 3, 1, 1}, 0.3F));
  grown.push_back(bias_leaky("conv", 3, 4, 0.5F, 1));
  grown.push_back(minibatch_stddev("deviation", 3, 4));
  grown.push_back(convolution("last", {4, 2, 2, 1, 2, 1, 0}, 0.4F));
  check_penalty_gradient(device, std::move(grown), "deviation");

  Layers seeing;
  seeing.push_back(convolution("first", {2, 4, 4, 3, 3, 1, 1}, 0.5F));
  seeing.push_back(batch_norm_leaky("norm", {.channels = 3, .positions = 16, .deviation = 0.5F}, 1));
  seeing.push_back(labelled("label", 3, 16, 2, std::make_shared<Tensor>(device.tensor(2, 5))));
  seeing.push_back(convolution("last", {5, 4, 4, 1, 4, 1, 0}, 0.5F));
  check_penalty_gradient(device, std::move(seeing), "label");

  Layers at_real;
  at_real.push_back(convolution("first", {2, 4, 4, 3, 3, 1, 1}, 0.5F));
  at_real.push_back(batch_norm_leaky("norm", {.channels = 3, .positions = 16, .deviation = 0.5F}, 1));
  at_real.push_back(convolution("last", {3, 4, 4, 1, 4, 1, 0}, 0.5F));
  check_penalty_gradient(device, std::move(at_real), "around zero", 0);
}

// For a linear critic the penalty is weight (|w| - centre)^2, whatever the images are.
TEST_P(PenaltyTest, OfALinearCriticIsKnown) {
  TestDevice device(GetParam(), 4);
  const Tensor gradient = device.tensor(24, 3), direction = device.tensor(24, 3);
  float* loss = device.floats(1);
  for (const double centre : {1.0, 0.0}) {
    device.ops().gradient_penalty(loss, direction, gradient, 10, static_cast<float>(centre));
    const auto g = device.rows(gradient), u = device.rows(direction);
    double expected = 0;
    for (std::size_t image = 0; image < 3; ++image) {
      double squares = 0;
      for (std::size_t i = image; i < g.size(); i += 3) squares += g[i] * g[i];
      const double norm = std::sqrt(squares), off = norm - centre;
      expected += 10 * off * off / 3;
      for (std::size_t i = image; i < g.size(); i += 3) EXPECT_NEAR(u[i], 20.0 / 3 * off * g[i] / norm, 1e-5);
    }
    EXPECT_NEAR(device.values(loss, 1)[0], expected, 1e-4);
  }
}

}  // namespace
}  // namespace ganymede::kernel
