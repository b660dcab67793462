// Activations that are stored in bf16: layers, whole steps, memory and checkpoints of the GPU backend, run on the CPU
// and compared with the same in fp32. A rounding to bf16, whose numbers have 8 bits, changes a number by at most 2^-8
// of itself. Whole trainings of every model are compared over the stand-in (cuda_stand_in/training_test.cpp).

#include <gtest/gtest.h>

#include <functional>
#include <numeric>

#include "kernel/gan_step.hpp"
#include "kernel/models/models.hpp"
#include "kernel/samples.hpp"
#include "kernel/train.hpp"
#include "support/when.hpp"
#include "test_device.hpp"

namespace ganymede::kernel {
namespace {

constexpr double kRounding = 0x1p-8;

std::unique_ptr<Backend> hosted(Precision precision, bool graph = false) {
  return make_hosted_cuda_backend({.precision = precision, .graph = graph});
}

/// The numbers that a layer computes from one batch.
struct Passes {
  std::vector<double> y, dx, parameter_gradients;
};

/// Both devices get the same numbers, which are those of bf16.
std::vector<float> rounded_numbers(std::size_t count, double low, std::uint64_t seed) {
  RandomStream random(seed, "tests/bf16");
  std::vector<float> numbers(count);
  for (float& number : numbers) number = from_bf16(to_bf16(static_cast<float>(low + (1 - low) * random.uniform())));
  return numbers;
}

Passes passes_of(Layer& layer, Precision precision) {
  constexpr int kBatch = 5;
  TestDevice device({"", [=] { return hosted(precision); }}, 3);
  TensorOps& ops = device.ops();
  Arena only_counts(ops.element_type());
  layer.plan(only_counts, kBatch);
  const Buffer block = ops.allocate(only_counts.used());
  Arena arena(block, ops.element_type());
  layer.plan(arena, kBatch);
  const std::size_t parameters = padded(layer.parameters());
  float* values = device.parameters(parameters);
  ops.write(values, rounded_numbers(parameters, 0.4, 1));
  float* gradients = device.floats(parameters, 0, 0);
  layer.bind(values, gradients, device.floats(padded(layer.statistics()), 0, 1));
  const Tensor x = device.tensor(layer.inputs(), kBatch), dy = device.tensor(layer.outputs(), kBatch);
  ops.write(x, rounded_numbers(x.size(), -1, 2));
  ops.write(dy, rounded_numbers(dy.size(), -1, 3));
  RandomStream noise(5, "tests/noise");
  Passes passes;
  passes.y = device.values(layer.forward(ops, x, noise));
  const Tensor spare = device.tensor(layer.inputs(), kBatch);
  passes.dx = device.values(layer.backward(ops, dy, spare.data, {}));
  passes.parameter_gradients = device.values(gradients, parameters);
  return passes;
}

void expect_near(const std::vector<double>& found, const std::vector<double>& expected, double roundings,
                 const std::string& what) {
  ASSERT_EQ(found.size(), expected.size()) << what;
  double largest = 0;
  for (const double value : expected) largest = std::max(largest, std::abs(value));
  for (std::size_t i = 0; i < expected.size(); ++i)
    EXPECT_NEAR(found[i], expected[i], roundings * kRounding * largest) << what << " " << i;
}

std::vector<std::unique_ptr<Layer>> all_layers() {
  std::vector<std::unique_ptr<Layer>> all;
  all.push_back(dense("layer", 19, 7));
  all.push_back(convolution("layer", {2, 6, 6, 3, 4, 2, 1}));
  all.push_back(transposed_convolution("layer", {3, 6, 6, 2, 4, 2, 1}));
  ConvolutionShape clip{2, 4, 4, 2, 3, 1, 1};
  clip.in_frames = 3, clip.kernel_frames = 3, clip.padding_frames = 1;
  all.push_back(convolution("layer", clip, 1));
  all.push_back(batch_norm_leaky("layer", {.channels = 3, .positions = 6}, 0.2F));
  all.push_back(leaky("layer", 12, 0.2F));
  all.push_back(bias_leaky("layer", 3, 5, 0.7F, 0.2F));
  all.push_back(leaky_dropout("layer", 30, 0.2F, 0.3F));
  all.push_back(tanh_image("layer", 9));
  all.push_back(sigmoid("layer", 9));
  all.push_back(pixel_norm("layer", 6, 5));
  all.push_back(upsample("layer", {.channels = 2, .frames = 4, .height = 2, .width = 4, .block_frames = 2}));
  all.push_back(downsample("layer", {.channels = 2, .height = 4, .width = 6}));
  all.push_back(minibatch_stddev("layer", 3, 4));
  Layers main, skip;
  main.push_back(upsample("up", {.channels = 2, .height = 4, .width = 4}));
  main.push_back(convolution("new", {2, 4, 4, 3, 3, 1, 1}, 1));
  main.push_back(bias_leaky("new", 3, 16, 0.5F, 1));
  skip.push_back(convolution("old", {2, 2, 2, 3, 1, 1, 0}, 1));
  skip.push_back(upsample("up.old", {.channels = 3, .height = 4, .width = 4}));
  all.push_back(faded(std::move(main), std::move(skip), std::make_shared<float>(0.3F)));
  return all;
}

// A layer rounds what it stores: its output and, where it has parts, what lies between them. At most six roundings
// follow each other, in the faded one.
TEST(StoredInBf16, LayersAreThoseOfFp32ButForRounding) {
  const auto exact = all_layers(), found = all_layers();
  for (std::size_t i = 0; i < exact.size(); ++i) {
    const Passes expected = passes_of(*exact[i], Precision::fp32), rounded = passes_of(*found[i], Precision::bf16);
    const std::string what = exact[i]->kind();
    expect_near(rounded.y, expected.y, 6, what + ": y");
    expect_near(rounded.dx, expected.dx, 6, what + ": dx");
    expect_near(rounded.parameter_gradients, expected.parameter_gradients, 6, what + ": gradients of parameters");
    EXPECT_NE(rounded.y, std::vector<double>(rounded.y.size())) << what;
  }
}

/// The gradients of the penalty with respect to the weights of a critic.
std::vector<double> penalty_gradients(Precision precision) {
  constexpr int kBatch = 5;
  TestDevice device({"", [=] { return hosted(precision); }}, 4);
  TensorOps& ops = device.ops();
  Layers layers;
  layers.push_back(convolution("first", {2, 4, 4, 3, 3, 1, 1}));
  layers.push_back(batch_norm_leaky("norm", {.channels = 3, .positions = 16, .deviation = 0.5F}, 1));
  layers.push_back(convolution("middle", {3, 4, 4, 4, 4, 2, 1}));
  layers.push_back(bias_leaky("middle", 4, 4, 0.5F, 1));
  layers.push_back(minibatch_stddev("deviation", 4, 4));
  layers.push_back(leaky_dropout("dropout", 20, 1, 0.3F));
  layers.push_back(dense("last", 20, 1));
  Network critic("critic", std::move(layers));
  critic.keep_tangents(true);
  RandomStream initial(3, "tests/initial"), noise(4, "tests/noise");
  critic.prepare(ops, kBatch, initial);
  ops.write(critic.parameter_data(), rounded_numbers(critic.parameter_floats(), -1, 5));
  const Tensor x = device.tensor(critic.inputs(), kBatch), direction = device.tensor(critic.inputs(), kBatch),
               ones = device.tensor(1, kBatch);
  ops.write(x, rounded_numbers(x.size(), -1, 6));
  critic.forward(ops, x, noise);
  ops.fill(ones, 1);
  const Tensor gradient = critic.backward(ops, ones, {false, false, true}, [](std::size_t) {});
  ops.gradient_penalty(device.floats(1), direction, gradient, 10);
  critic.tangent(ops, direction);
  ops.fill(ones, 1);
  ops.write(critic.gradient_data(), std::vector<float>(critic.parameter_floats()));
  critic.tangent_backward(ops, ones, [](std::size_t) {});
  return device.values(critic.gradient_data(), critic.parameter_floats());
}

// Seven layers are passed four times: forward, back, along the tangent and back again.
TEST(StoredInBf16, TheGradientPenaltyIsThatOfFp32ButForRounding) {
  expect_near(penalty_gradients(Precision::bf16), penalty_gradients(Precision::fp32), 7 * 4, "penalty");
}

TEST(StoredInBf16, MemoryIsPlannedAsItIsUsedAndActivationsTakeHalf) {
  std::map<std::string, double> planned[2];
  for (const Precision precision : {Precision::fp32, Precision::bf16}) {
    const auto backend = hosted(precision);
    const std::size_t before = backend->ops->peak_allocated_bytes();
    Gan gan = find_model("dcgan-28").build({28, 28, 1}, {});
    auto& kinds = planned[precision == Precision::bf16 ? 1 : 0];
    kinds = gan.planned_memory_bytes(*backend->ops, 16, {.average = true, .gradient_penalty = true});
    gan.prepare(*backend->ops, 16, 1, {.average = true, .gradient_penalty = true});
    const double all = std::accumulate(kinds.begin(), kinds.end(), 0.0,
                                       [](double sum, const auto& kind) { return sum + kind.second; });
    EXPECT_EQ(static_cast<double>(backend->ops->peak_allocated_bytes() - before), all);
  }
  auto& [exact, rounded] = planned;
  EXPECT_EQ(rounded.at("parameters"), 1.5 * exact.at("parameters"));
  EXPECT_EQ(rounded.at("gradients"), exact.at("gradients"));
  EXPECT_EQ(rounded.at("shared"), exact.at("shared") / 2);
  EXPECT_NEAR(rounded.at("activations"), exact.at("activations") / 2, 0.01 * exact.at("activations"));
}

// Numbers that are kept between the passes as they are stored, or in bf16, are the same.
TEST(StoredInBf16, KeptActivationsAreThoseOfThePlainStorage) {
  const auto losses = [](ActivationStorage storage) {
    const auto backend = hosted(Precision::bf16);
    TensorOps& ops = *backend->ops;
    Gan gan = find_model("progressive-gan").build({8, 8, 3}, {0, false});
    gan.prepare(ops, 2, 5, {.activations = storage});
    StepRandom random(7);
    StepClock clock;
    std::vector<double> all;
    const std::vector<std::uint8_t> bytes(gan.real.size(), 90);
    for (int step = 0; step < 2; ++step) {
      const Losses one =
          gan_step(gan, ops, random, {}, clock, [&] { ops.load_images(gan.real, bytes, gan.darkest, gan.channels()); });
      all.insert(all.end(), {one.discriminator, one.generator});
    }
    return all;
  };
  const auto plain = losses({});
  for (const bool recompute : {true, false}) EXPECT_EQ(losses({recompute, Compression::bf16}), plain);
  EXPECT_EQ(losses({true, Compression::none}), plain);
  for (const Compression compression : {Compression::fp16, Compression::int8}) {
    const auto found = losses({true, compression});
    for (std::size_t i = 0; i < plain.size(); ++i) EXPECT_NEAR(found[i], plain[i], 0.05 * (1 + std::abs(plain[i])));
  }
}

// Weights, moments and averages are fp32; the copies that products read follow them from stage to stage.
TEST(StoredInBf16, AGrowingTrainingResumesToTheSameLosses) {
  LONG_TEST();
  TrainOptions options;
  options.model = "progressive-gan";
  options.image = "32x32x3";
  options.batch = 2;
  options.stage_steps = 2;
  options.average_decay = 0.9F;
  const auto backend = [] { return hosted(Precision::bf16, true); };
  Trainer whole(options, nullptr, backend()), again(options, nullptr, backend());
  whole.step();
  again.restore(whole.checkpoint(), "memory");
  for (int step = 1; step < 4; ++step) {  // into the second stage, and a replayed step of it
    const Losses expected = whole.step(), found = again.step();
    EXPECT_EQ(found.discriminator, expected.discriminator) << step;
    EXPECT_EQ(found.generator, expected.generator) << step;
  }
  EXPECT_EQ(sample_images(again.gan(), again.ops(), 1, 2), sample_images(whole.gan(), whole.ops(), 1, 2));
}

}  // namespace
}  // namespace ganymede::kernel
