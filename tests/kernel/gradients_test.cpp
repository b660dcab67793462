// Compares every backward pass with finite differences of its forward pass. The loss is a fixed random projection of
// the output, summed in double precision; central differences with a step of 2^-7 leave an error of about 1e-4 from the
// step and as much from single precision.

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "kernel/layer.hpp"
#include "test_device.hpp"

namespace ganymede::kernel {
namespace {

constexpr float kStep = 1.0F / 128;
constexpr double kTolerance = 2e-3;

class GradientTest : public testing::TestWithParam<BackendCase> {
 protected:
  /// d loss / d x[i] for `count` elements at `x`.
  std::vector<double> numeric(float* x, std::size_t count, const std::function<double()>& loss) {
    std::vector<double> gradient;
    for (std::size_t i = 0; i < count; ++i) gradient.push_back(device_.slope(x, i, kStep, loss));
    return gradient;
  }

  void expect_near(const std::vector<double>& analytic, const std::vector<double>& expected, const char* what) {
    ASSERT_EQ(analytic.size(), expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i)
      EXPECT_NEAR(analytic[i], expected[i], kTolerance * (1 + std::abs(expected[i]))) << what << " " << i;
  }

  double project(Tensor y, const std::vector<double>& weights) {
    const auto values = device_.values(y);
    double sum = 0;
    for (std::size_t i = 0; i < values.size(); ++i) sum += values[i] * weights[i];
    return sum;
  }

  /// A layer's gradients of its input and its parameters.
  void check_layer(Layer& layer, int batch, std::uint64_t noise_seed = 5) {
    Arena only_counts(ElementType::fp32);
    layer.plan(only_counts, batch);
    const Buffer block = device_.ops().allocate(only_counts.used());
    Arena arena(block, ElementType::fp32);
    layer.plan(arena, batch);
    device_.ops().reserve_workspace(layer.workspace_bytes(device_.ops(), batch));
    const std::size_t parameters = padded(layer.parameters());
    float *values = device_.floats(parameters, 0.4, 1.2), *gradients = device_.floats(parameters, 0, 0);
    layer.bind(values, gradients, device_.floats(padded(layer.statistics()), 0, 1));

    const Tensor given = device_.tensor(layer.inputs(), batch), x = device_.tensor(layer.inputs(), batch);
    const auto forward = [&] {
      device_.ops().copy(x, given);                   // layers may work in place
      RandomStream noise(noise_seed, "tests/noise");  // the same units are dropped every time
      return layer.forward(device_.ops(), x, noise);
    };
    const Tensor y = forward();
    const Tensor direction = device_.tensor(y.features, batch);
    const auto weights = device_.values(direction);
    const auto loss = [&] { return project(forward(), weights); };

    forward();
    const Tensor spare = device_.tensor(layer.inputs(), batch);
    const Tensor dx = layer.backward(device_.ops(), direction, spare.data, {});
    const auto d_input = device_.values(dx), d_parameters = device_.values(gradients, parameters);
    expect_near(d_input, numeric(given.floats(), given.size(), loss), "input");
    expect_near(d_parameters, numeric(values, parameters, loss), "parameter");
  }

  TestDevice device_{GetParam(), 2};
};

INSTANTIATE_TEST_SUITE_P(AllBackends, GradientTest, testing::ValuesIn(fp32_backends()),
                         [](const auto& instance) { return instance.param.name; });

TEST_P(GradientTest, Dense) { check_layer(*dense("layer", 7, 9), 5); }

TEST_P(GradientTest, DropoutAndLogit) { check_layer(*dropped_logit("layer", 9, 1.0F, 0.4F), 7); }

// Slope 1: a leaky ReLU without a kink. Tests further below compare other slopes with this case.
TEST_P(GradientTest, BatchNormAlone) { check_layer(*batch_norm_leaky("layer", {.channels = 4}, 1.0F), 19); }

TEST_P(GradientTest, LeakyReluAndDropout) {
  // A number closer to zero than the step would cross the kink.
  const Tensor y = device_.tensor(6, 11), dy = device_.tensor(6, 11);
  const Mask mask = device_.mask(6, 11);
  const LeakyDropoutParameters parameters{.slope = 0.2F, .keep = 0.6F};
  auto x = device_.singles(y);
  for (float& value : x) value += value > 0 ? 0.1F : -0.1F;
  const auto weights = device_.values(dy);
  const auto apply = [&](const std::vector<float>& input) {
    device_.ops().write(y, input);
    RandomStream noise(9, "tests/noise");
    device_.ops().leaky_dropout_forward(y, mask, parameters, noise);
    return project(y, weights);
  };
  std::vector<double> expected;
  for (std::size_t i = 0; i < x.size(); ++i) {
    auto above = x, below = x;
    above[i] += kStep;
    below[i] -= kStep;
    expected.push_back((apply(above) - apply(below)) / (2.0 * static_cast<double>(kStep)));
  }
  apply(x);
  float* d_bias = device_.floats(6);
  device_.ops().leaky_dropout_backward(dy, y, mask, parameters, d_bias);
  expect_near(device_.values(dy), expected, "input");
  std::vector<double> sums(6);
  const auto rows = device_.rows(dy);
  for (std::size_t i = 0; i < rows.size(); ++i) sums[i / 11] += rows[i];
  expect_near(device_.values(d_bias, 6), sums, "bias of the layer before");
}

TEST_P(GradientTest, BatchNormThenLeakyRelu) {
  // Compares with the smooth batch norm: where z < 0, the leaky ReLU only scales the incoming gradient.
  const int features = 3, batch = 17;
  const Tensor x = device_.tensor(features, batch), y = device_.tensor(features, batch),
               leaky_y = device_.tensor(features, batch);
  const Tensor dy = device_.tensor(features, batch), masked = device_.tensor(features, batch);
  float *saved = device_.floats(6), *running = device_.floats(6, 1, 1), *gradients = device_.floats(6),
        *smooth = device_.floats(6);
  BatchNormParameters normal{.scale = device_.floats(3, 0.5, 1.5),
                             .shift = device_.floats(3),
                             .running_mean = running,
                             .running_variance = running + 3,
                             .mean = saved,
                             .inverse_deviation = saved + 3,
                             .momentum = 0.1F,
                             .epsilon = 1e-5F,
                             .slope = 1};
  device_.ops().batch_norm_leaky_forward(y, x, normal);
  auto incoming = device_.singles(dy);
  const auto z = device_.values(y);
  for (std::size_t i = 0; i < z.size(); ++i) incoming[i] *= z[i] > 0 ? 1.0F : 0.2F;
  device_.ops().write(masked, incoming);
  device_.ops().batch_norm_leaky_backward(masked, x, normal, smooth, smooth + 3, false);
  normal.slope = 0.2F;
  device_.ops().batch_norm_leaky_forward(leaky_y, x, normal);
  device_.ops().batch_norm_leaky_backward(dy, x, normal, gradients, gradients + 3, false);
  const auto expected = device_.values(masked), found = device_.values(dy);
  for (std::size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-5);
  for (std::size_t i = 0; i < 6; ++i) EXPECT_NEAR(device_.values(gradients, 6)[i], device_.values(smooth, 6)[i], 1e-5);

  // A second batch adds its gradients; a frozen network has none.
  device_.ops().write(dy, incoming);
  device_.ops().batch_norm_leaky_backward(dy, x, normal, gradients, gradients + 3, true);
  const auto twice = device_.values(gradients, 6);
  device_.ops().batch_norm_leaky_backward(dy, x, normal, nullptr, nullptr, false);
  EXPECT_EQ(device_.values(gradients, 6), twice);
}

TEST_P(GradientTest, BatchNormOverPositions) {
  check_layer(*batch_norm_leaky("layer", {.channels = 3, .positions = 6}, 1.0F), 5);
}

TEST_P(GradientTest, Convolution) { check_layer(*convolution("layer", {2, 6, 6, 3, 4, 2, 1}), 5); }
TEST_P(GradientTest, TransposedConvolution) { check_layer(*transposed_convolution("layer", {3, 6, 6, 2, 4, 2, 1}), 5); }

ConvolutionShape clip_shape(int from, int frames, int size, int to) {
  ConvolutionShape shape{from, size, size, to, 3, 1, 1};
  shape.in_frames = frames;
  shape.kernel_frames = 3;
  shape.padding_frames = 1;
  return shape;
}

TEST_P(GradientTest, ConvolutionOfClips) { check_layer(*convolution("layer", clip_shape(2, 3, 4, 2), 1), 3); }
TEST_P(GradientTest, BiasOfChannels) { check_layer(*bias_leaky("layer", 3, 5, 0.7F, 1), 4); }
TEST_P(GradientTest, PixelNorm) { check_layer(*pixel_norm("layer", 6, 5), 7); }
TEST_P(GradientTest, Resampling) {
  check_layer(*upsample("layer", {.channels = 2, .height = 4, .width = 6}), 5);
  check_layer(*downsample("layer", {.channels = 2, .height = 4, .width = 6}), 5);
  const BlockShape clip{.channels = 2, .frames = 4, .height = 2, .width = 4, .block_frames = 2};
  check_layer(*upsample("layer", clip), 3);
  check_layer(*downsample("layer", clip), 3);
}
TEST_P(GradientTest, MinibatchStddev) { check_layer(*minibatch_stddev("layer", 3, 4), 6); }
TEST_P(GradientTest, Labelled) {
  check_layer(*labelled("layer", 2, 3, 4, std::make_shared<Tensor>(device_.tensor(4, 5))), 5);
}
TEST_P(GradientTest, InstanceNorm) { check_layer(*instance_norm_leaky("layer", 3, 9, 1), 4); }
TEST_P(GradientTest, Residual) {
  Layers inner;
  inner.push_back(convolution("first", {2, 3, 3, 2, 3, 1, 1}, 1));
  inner.push_back(instance_norm_leaky("norm", 2, 9, 1));
  inner.push_back(convolution("second", {2, 3, 3, 2, 3, 1, 1}, 1));
  check_layer(*residual("layer", std::move(inner)), 4);
}
TEST_P(GradientTest, Faded) {
  Layers main, skip;
  main.push_back(upsample("up", {.channels = 2, .height = 4, .width = 4}));
  main.push_back(convolution("new", {2, 4, 4, 3, 3, 1, 1}, 1));
  main.push_back(bias_leaky("new", 3, 16, 0.5F, 1));
  skip.push_back(convolution("old", {2, 2, 2, 3, 1, 1, 0}, 1));
  skip.push_back(upsample("up.old", {.channels = 3, .height = 4, .width = 4}));
  check_layer(*faded(std::move(main), std::move(skip), std::make_shared<float>(0.3F)), 4);
}

// Compares with the smooth layer, given the gradient that the LeakyReLU passes on.
TEST_P(GradientTest, BiasThenLeakyRelu) {
  const Tensor x = device_.tensor(6, 7), y = device_.tensor(6, 7), dy = device_.tensor(6, 7);
  const float* bias = device_.floats(3);
  float* d_bias = device_.floats(3, 1, 1);
  const auto xs = device_.rows(x, 3), before = device_.rows(dy, 3), biases = device_.values(bias, 3);
  device_.ops().copy(y, x);
  device_.ops().bias_leaky_forward(y, bias, 3, 0.5F, 0.2F);
  device_.ops().bias_leaky_backward(dy, y, d_bias, 3, 0.5F, 0.2F, true);
  const auto ys = device_.rows(y, 3), after = device_.rows(dy, 3);
  std::vector<double> sums(3, 1);
  for (std::size_t i = 0; i < xs.size(); ++i) {
    const std::size_t channel = i / 14;
    const double z = 0.5 * xs[i] + biases[channel], through = before[i] * (z > 0 ? 1 : 0.2);
    EXPECT_NEAR(ys[i], z > 0 ? z : 0.2 * z, 1e-6);
    EXPECT_NEAR(after[i], 0.5 * through, 1e-6);
    sums[channel] += through;
  }
  for (std::size_t c = 0; c < 3; ++c) EXPECT_NEAR(device_.values(d_bias, 3)[c], sums[c], 1e-5);
}

TEST_P(GradientTest, Leaky) {
  const Tensor x = device_.tensor(4, 9), y = device_.tensor(4, 9), dy = device_.tensor(4, 9);
  const auto xs = device_.singles(x), before = device_.singles(dy);
  for (const float slope : {0.0F, 0.2F}) {
    device_.ops().copy(y, x);
    device_.ops().activate(y, leaky_relu(slope));
    device_.ops().write(dy, before);
    device_.ops().activate_backward(dy, y, leaky_relu(slope));
    const auto ys = device_.singles(y), after = device_.singles(dy);
    for (std::size_t i = 0; i < xs.size(); ++i) {
      EXPECT_EQ(ys[i], xs[i] > 0 ? xs[i] : slope * xs[i]);
      EXPECT_EQ(after[i], xs[i] > 0 ? before[i] : slope * before[i]);
    }
  }
}

TEST_P(GradientTest, Tanh) { check_layer(*tanh_image("layer", 5), 21); }
TEST_P(GradientTest, Sigmoid) { check_layer(*sigmoid("layer", 5), 21); }

TEST_P(GradientTest, AdversarialLosses) {
  const auto s = [](double l) { return 1 / (1 + std::exp(-l)); };
  const std::vector<std::pair<LossTerm, std::function<double(double)>>> terms = {
      {LossTerm::cross_entropy_real, [&](double l) { return -std::log(s(l)); }},
      {LossTerm::cross_entropy_fake, [&](double l) { return -std::log(1 - s(l)); }},
      {LossTerm::log_probability_fake, [&](double l) { return std::log(1 - s(l)); }},
      {LossTerm::hinge_real, [](double l) { return std::max(0.0, 1 - l); }},
      {LossTerm::hinge_fake, [](double l) { return std::max(0.0, 1 + l); }},
      {LossTerm::negative_logit, [](double l) { return -l; }},
      {LossTerm::logit, [](double l) { return l; }},
      {LossTerm::square_real, [](double l) { return (l - 1) * (l - 1) / 2; }},
      {LossTerm::square_fake, [](double l) { return l * l / 2; }},
      {LossTerm::whole_square_real, [](double l) { return (l - 1) * (l - 1); }},
  };
  for (const auto& [term, of] : terms) {
    const Tensor logits = device_.tensor(1, 13, -3, 3), gradient = device_.tensor(1, 13);
    float* loss = device_.floats(1);
    double expected_loss = 0;
    std::vector<double> expected;
    for (const double value : device_.values(logits)) {
      const double step = 1e-4;
      expected_loss += of(value) / 13;
      expected.push_back((of(value + step) - of(value - step)) / (2 * step) / 13);
    }
    device_.ops().adversarial_loss(loss, gradient, logits, term);
    EXPECT_NEAR(device_.values(loss, 1)[0], expected_loss, 1e-5) << static_cast<int>(term);
    const auto found = device_.values(gradient);
    for (std::size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-6) << static_cast<int>(term);
  }
}

}  // namespace
}  // namespace ganymede::kernel
