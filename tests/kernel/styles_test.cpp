// StyleGAN2's step: modulated convolutions and the generator made of them, first and second order by finite
// differences; regularisation that only some steps have, and its place in traces and checkpoints.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "courses.hpp"
#include "kernel/describe.hpp"
#include "kernel/models/models.hpp"
#include "scratch.hpp"
#include "support/when.hpp"
#include "test_device.hpp"

namespace ganymede::kernel {
namespace {

using Numbers = std::vector<double>;

class StylesTest : public testing::TestWithParam<BackendCase> {
 protected:
  /// d f / d x by central differences.
  static Numbers numeric(Numbers& x, const std::function<double()>& f) {
    Numbers gradient;
    for (double& value : x) {
      const double middle = value;
      value = middle + 1e-4;
      const double above = f();
      value = middle - 1e-4;
      gradient.push_back((above - f()) / 2e-4);
      value = middle;
    }
    return gradient;
  }
  void expect_near(const Numbers& found, const Numbers& expected, const char* what, int stored = 2) {
    ASSERT_EQ(found.size(), expected.size());
    for (std::size_t i = 0; i < found.size(); ++i)
      EXPECT_NEAR(found[i], expected[i], 2e-5 * (1 + std::abs(expected[i])) + device_.stored(expected[i], stored))
          << what << " " << i;
  }

  TestDevice device_{GetParam(), 2};
  TensorOps& ops_ = device_.ops();
};
INSTANTIATE_TEST_SUITE_P(AllBackends, StylesTest, testing::ValuesIn(backends()),
                         [](const auto& instance) { return instance.param.name; });

TEST_P(StylesTest, ChannelsAreScaledAndMultiplied) {
  const int channels = 3, positions = 4, batch = 5;
  const Tensor x = device_.tensor(channels * positions, batch), y = device_.tensor(x.features, batch),
               factors = device_.tensor(channels, batch), products = device_.tensor(channels, batch);
  const Numbers xs = device_.rows(x, channels), ys = device_.rows(y, channels), by = device_.rows(factors),
                had = device_.rows(products);
  Numbers sums(by.size());
  for (std::size_t i = 0; i < xs.size(); ++i) sums[i / (positions * batch) * batch + i % batch] += xs[i] * ys[i];
  ops_.channel_products(products, x, y, true);
  Numbers added = sums;
  for (std::size_t i = 0; i < sums.size(); ++i) added[i] += had[i];
  expect_near(device_.rows(products), added, "added products", 4);
  ops_.channel_products(products, x, y);
  expect_near(device_.rows(products), sums, "products");

  Numbers scaled = xs, on_top = ys;
  for (std::size_t i = 0; i < xs.size(); ++i) {
    scaled[i] *= by[i / (positions * batch) * batch + i % batch];
    on_top[i] += scaled[i];
  }
  ops_.scale_channels(y, x, factors, true);
  expect_near(device_.rows(y, channels), on_top, "added", 4);
  ops_.scale_channels(x, x, factors);
  expect_near(device_.rows(x, channels), scaled, "in place");
}

/// 1 / sqrt(sum of (weight style)^2 + epsilon), [outputs x batch], and its tangent along `dot`.
struct Demodulated {
  Numbers factors, tangent;
  Demodulated(const Numbers& weight, const Numbers& styles, const Numbers& dot, std::size_t outputs, std::size_t batch,
              double epsilon) {
    const std::size_t inputs = styles.size() / batch, taps = weight.size() / outputs / inputs;
    for (std::size_t o = 0; o < outputs; ++o)
      for (std::size_t b = 0; b < batch; ++b) {
        double sum = epsilon, sum_dot = 0;
        for (std::size_t i = 0; i < inputs * taps; ++i) {
          const double w = weight[o * inputs * taps + i], s = styles[i / taps * batch + b];
          sum += w * w * s * s;
          sum_dot += 2 * w * w * s * dot[i / taps * batch + b];
        }
        factors.push_back(1 / std::sqrt(sum));
        tangent.push_back(-sum_dot / (2 * std::pow(sum, 1.5)));
      }
  }
};

TEST_P(StylesTest, DemodulationsAdjointsAreThoseOfTheDefinition) {
  const ConvolutionShape shape{3, 4, 4, 2, 3, 1, 1};
  const int batch = 4;
  const DemodulationParameters parameters{device_.parameters(shape.weights()), shape.taps(), 0.1F};
  const auto inputs = [&] { return device_.tensor(3, batch); };
  const auto outputs = [&] { return device_.tensor(2, batch); };
  const Adjoints styles{inputs(), inputs()}, factors{outputs(), outputs()};
  const double epsilon = static_cast<double>(parameters.epsilon);
  Numbers weight = device_.weights(parameters.weight, shape), s = device_.rows(styles.value),
          s_dot = device_.rows(styles.tangent);
  ops_.demodulate(factors.value, styles.value, parameters);
  ops_.demodulate_tangent(factors.tangent, styles.tangent, factors.value, styles.value, parameters);
  const Demodulated expected(weight, s, s_dot, 2, batch, epsilon);
  expect_near(device_.rows(factors.value), expected.factors, "factors");
  expect_near(device_.rows(factors.tangent), expected.tangent, "tangent", 8);
  if (ops_.element_type() != ElementType::fp32) return;  // of the rest only the rounding would be seen

  for (const bool tangents : {false, true}) {
    const Adjoints d_factors{outputs(), tangents ? outputs() : Tensor{}};
    const Numbers g = device_.rows(d_factors.value), h = tangents ? device_.rows(d_factors.tangent) : Numbers(g.size());
    const Adjoints d_styles{inputs(), tangents ? inputs() : Tensor{}};
    const Numbers had = device_.rows(d_styles.value);
    float* d_weight = device_.floats(shape.weights(), 1, 1);
    ops_.demodulate_backward(d_styles, d_weight, d_factors, factors, styles, parameters);
    const auto scalar = [&] {
      const Demodulated d(weight, s, s_dot, 2, batch, epsilon);
      double sum = 0;
      for (std::size_t i = 0; i < g.size(); ++i) sum += g[i] * d.factors[i] + h[i] * d.tangent[i];
      return sum;
    };
    Numbers of_s = device_.rows(d_styles.value), of_weight = device_.weights(d_weight, shape);
    for (std::size_t i = 0; i < of_s.size(); ++i) of_s[i] -= had[i];
    for (double& value : of_weight) value -= 1;
    expect_near(of_s, numeric(s, scalar), "styles");
    expect_near(of_weight, numeric(weight, scalar), "weights");
    ops_.demodulate_backward(d_styles, nullptr, d_factors, factors, styles, parameters);
  }
}

/// A generator of 4x4 images of two colours from latents of 3 numbers. Its activations have no kinks.
Network small_generator() {
  const auto styles = std::make_shared<Styles>(Styles{.width = 4});
  Layers layers;
  layers.push_back(dense("map", 3, 4));
  layers.push_back(learned_constant("constant", 2, 2, styles));
  layers.push_back(modulated_convolution("conv2", {2, 2, 2, 3, 3, 1, 1}, styles));
  layers.push_back(bias_leaky("conv2", 3, 4, 1.4F, 1));
  layers.push_back(to_colours("rgb2", {.shape = {3, 2, 2, 2, 1, 1, 0}, .first = true}, styles));
  layers.push_back(upsample("up4", {.channels = 3, .height = 4, .width = 4}));
  layers.push_back(modulated_convolution("conv4", {3, 4, 4, 2, 3, 1, 1}, styles));
  layers.push_back(bias_leaky("conv4", 2, 16, 1.4F, 1));
  layers.push_back(to_colours("rgb4", {.shape = {2, 4, 4, 2, 1, 1, 0}, .last = true}, styles));
  return {"generator", std::move(layers)};
}
constexpr std::size_t kStyledLayer = 1;  // of small_generator()

class StyledGenerator : public testing::TestWithParam<BackendCase> {
 protected:
  StyledGenerator() {
    network_.keep_tangents(true);
    RandomStream initial(3, "tests/initial");
    network_.prepare(ops_, 3, initial);
  }
  Tensor forward() { return network_.forward(ops_, x_, noise_); }
  /// Compares the network's gradients with differences of `loss`.
  void expect_gradients(const std::function<double()>& loss, double tolerance) {
    const auto found = device_.values(network_.gradient_data(), network_.parameter_floats());
    double largest = 0;
    for (const NamedRange& range : network_.parameters()) {
      double size = 0;
      for (std::size_t i = range.offset; i < range.offset + range.size; ++i) {
        const double expected = device_.slope(network_.parameter_data(), i, 1.0F / 128, loss);
        EXPECT_NEAR(found[i], expected, tolerance * (1 + std::abs(expected))) << range.name << " " << i;
        size = std::max(size, std::abs(found[i]));
      }
      if (range.name.starts_with("rgb") && range.name.ends_with(".bias")) continue;
      EXPECT_GT(size, 10 * tolerance) << range.name;  // or the comparison would see nothing
      largest = std::max(largest, size);
    }
    EXPECT_GT(largest, 0.1);
  }

  TestDevice device_{GetParam(), 7};
  TensorOps& ops_ = device_.ops();
  Network network_ = small_generator();
  RandomStream noise_{5, "tests/noise"};
  Tensor x_ = device_.tensor(3, 3), image_ = device_.tensor(32, 3);
};
INSTANTIATE_TEST_SUITE_P(AllBackends, StyledGenerator, testing::ValuesIn(fp32_backends()),
                         [](const auto& instance) { return instance.param.name; });

constexpr auto kIgnore = [](std::size_t) {};

TEST_P(StyledGenerator, HasTheGradientsOfItsImages) {
  const Numbers weights = device_.values(image_);
  const auto loss = [&] {
    const Numbers values = device_.values(forward());
    double sum = 0;
    for (std::size_t i = 0; i < values.size(); ++i) sum += values[i] * weights[i];
    return sum;
  };
  forward();
  network_.backward(ops_, image_, {}, kIgnore);
  expect_gradients(loss, 2e-3);
}

TEST_P(StyledGenerator, HasTheGradientsOfThePathLength) {
  const auto given = device_.singles(image_);
  const Tensor direction = device_.tensor(4, 3);
  float *penalty = device_.floats(1), *length = device_.floats(1);
  const auto loss = [&] {
    forward();
    ops_.write(image_, given);
    const Tensor v = network_.backward(ops_, image_, {.weights = false}, kIgnore, 0, {.first = kStyledLayer});
    ops_.gradient_penalty(penalty, direction, v, 2, 0.7F, length);
    return device_.values(penalty, 1)[0];
  };
  const double at = loss();
  // The mean of (|v| - a)^2 is at least that of the mean length.
  EXPECT_GE(at, 2 * std::pow(device_.values(length, 1)[0] - 0.7, 2));
  network_.tangent(ops_, direction, kStyledLayer);
  ops_.fill({network_.gradient_data(), static_cast<int>(network_.parameter_floats()), 1}, 0);
  ops_.write(image_, given);
  const Adjoints d = network_.tangent_backward(ops_, image_, kIgnore, kStyledLayer);
  network_.backward(ops_, d.value, {.weights = true, .accumulate = true, .input = false}, kIgnore, 0,
                    {.end = kStyledLayer});
  expect_gradients(loss, 5e-3);
}

TEST_P(StyledGenerator, InfersWhatItTrains) {
  const Numbers trained = device_.values(forward());
  EXPECT_EQ(device_.values(network_.infer(ops_, x_)), trained);
}

TrainOptions styled_training(const Scratch& scratch) {
  TrainOptions options = small_training(scratch, 40);
  options.model = "stylegan2-28";
  options.batch = 4;
  options.average_decay = 0.9F;
  return options;
}

TEST(StyledTraining, HasLossesOfRegularizationInSomeSteps) {
  const Scratch scratch;
  Trainer trainer(styled_training(scratch));
  for (int step = 0; step < 9; ++step) {
    const double before = trainer.gan().path_length;
    const Losses losses = trainer.step();
    EXPECT_EQ(losses.path_length > 0, step % 4 == 0) << step;
    EXPECT_EQ(trainer.gan().path_length, before + (step % 4 == 0 ? 0.01 * (losses.path_length - before) : 0));
    float penalty = -1;
    trainer.ops().read({&penalty, 1}, trainer.gan().losses + kLossPenalty);
    EXPECT_EQ(penalty > 0, step == 0) << step;
    if (step > 0) continue;
    // While the average is 0 the loss is 2 * 4 times the mean of squared lengths, little above the square of their
    // mean.
    float path = 0;
    trainer.ops().read({&path, 1}, trainer.gan().losses + kLossPath);
    const double square = losses.path_length * losses.path_length;
    EXPECT_GT(static_cast<double>(path), 7.9 * square);
    EXPECT_LT(static_cast<double>(path), 10 * square);
  }
}

// The path lengths' average is a part of the state.
TEST(StyledTraining, GoesOnBitForBitFromACheckpoint) {
  const Scratch scratch;
  Trainer whole(styled_training(scratch)), second(styled_training(scratch));
  whole.run(3);
  second.restore(whole.checkpoint(), "x");
  const Losses expected = whole.run(3).losses, found = second.run(3).losses;
  EXPECT_EQ(found.generator, expected.generator);
  EXPECT_TRUE(write_weights(second.gan(), second.ops()) == write_weights(whole.gan(), whole.ops()));
  SafeTensors without = whole.checkpoint();
  without.metadata.erase("path-length");
  EXPECT_THAT([&] { second.restore(without, "x"); },
              testing::ThrowsMessage<ConfigError>(testing::HasSubstr("path-length")));
}

TEST(StyledTraining, DescribesTheMeanOfItsSteps) {
  const Scratch scratch;
  TrainOptions options = styled_training(scratch);
  options.batch = 2;
  Trainer trainer(options);
  const Work before = trainer.ops().work();
  trainer.run(16);
  const Description description = describe(options);
  EXPECT_NEAR((trainer.ops().work() - before).flops / 16 / description.flops_per_step, 1, 1e-12);
}

// The first step runs call by call, the second is captured; the fifth has the path length and runs call by call too.
TEST(StyledTraining, ReplaysTheStepsThatAreAlike) {
  LONG_TEST();
  const Steps steps{"stylegan2-28", AdversarialLoss::r1};
  const auto replayed = std::make_shared<HostDevice>(1), called = std::make_shared<HostDevice>(1);
  const Course found = run(*cuda::make_backend(replayed, {}), steps, 6);
  const Course expected = run(*cuda::make_backend(called, {.graph = false}), steps, 6);
  EXPECT_EQ(found.losses, expected.losses);
  EXPECT_EQ(found.samples, expected.samples);
  EXPECT_EQ(replayed->replays, 4);
}

TEST(StyledTraining, TracesPhasesThatSomeStepsLeaveOut) {
  const Scratch scratch;
  TrainOptions options = styled_training(scratch);
  options.trace = true;
  Trainer trainer(options);
  trainer.run(19);
  const traces::StepTrace trace = trainer.trace(2);
  EXPECT_EQ(trace.batches[0].warmup_steps_dropped, 3) << "16 steps are a whole period of R1";
  traces::load_step_trace(scratch.write("trace.json", traces::write_step_trace(trace)));  // passes its checks
  double flops = 0;
  for (const auto& phase : trace.batches[0].phases) {
    flops += phase.flops;
    const bool path = phase.name == "generator.path_length";
    if (!path && phase.name != "discriminator.gradient_penalty") continue;
    EXPECT_GT(phase.launches, path ? 50 : 10);
    ASSERT_EQ(phase.seconds.size(), 16U);
    std::vector<double> due, others;  // the first of these steps is the training's fourth
    for (std::size_t step = 0; step < 16; ++step)
      ((path ? step % 4 == 1 : step == 13) ? due : others).push_back(phase.seconds[step]);
    std::ranges::sort(others);  // the median, because another program may delay any step
    EXPECT_GT(std::ranges::min(due), 10 * others[others.size() / 2]) << phase.name;
  }
  EXPECT_NEAR(flops, trainer.gan().step_flops_per_image(1, true) * options.batch, 1);
  for (const auto& bucket : trace.batches[0].buckets)
    EXPECT_EQ(bucket.after_phase, bucket.network == "generator" ? "generator.backward" : "discriminator.backward_fake");
}

}  // namespace
}  // namespace ganymede::kernel
