// Compares each operation with its definition in double precision, on shapes that are no multiple of a vector or tile.

#include <gtest/gtest.h>

#include <cmath>

#include "kernel/ops/tensor_ops.hpp"
#include "test_device.hpp"

namespace ganymede::kernel {
namespace {

struct Shape {
  int outputs, inputs, batch;
};

class OpsTest : public testing::TestWithParam<BackendCase> {
 protected:
  TestDevice device_{GetParam(), 1};
  TensorOps& ops_ = device_.ops();
};

INSTANTIATE_TEST_SUITE_P(AllBackends, OpsTest, testing::ValuesIn(backends()),
                         [](const auto& instance) { return instance.param.name; });

constexpr Shape kShapes[] = {{1, 1, 2}, {7, 5, 3}, {6, 16, 16}, {13, 300, 37}, {100, 50, 64}, {257, 129, 70}};

/// Error bound for a sum of `terms` products of numbers within 1, in single precision and in any order.
double tolerance(int terms) { return 2e-7 * terms + 1e-6; }

std::size_t at(int row, int column, int columns) {
  return static_cast<std::size_t>(row) * static_cast<std::size_t>(columns) + static_cast<std::size_t>(column);
}

TEST_P(OpsTest, DenseForwardIsWeightTimesInputPlusBias) {
  for (const auto [outputs, inputs, batch] : kShapes) {
    const Tensor x = device_.tensor(inputs, batch), y = device_.tensor(outputs, batch);
    const std::size_t weights = at(outputs, 0, inputs), biases = at(outputs, 0, 1);
    const float *w = device_.parameters(weights), *bias = device_.parameters(biases);
    ops_.dense_forward(y, x, {w, bias});
    const auto xs = device_.rows(x), ys = device_.rows(y), ws = device_.values(w, weights),
               bs = device_.values(bias, biases);
    for (int o = 0; o < outputs; ++o)
      for (int b = 0; b < batch; ++b) {
        double expected = bs[static_cast<std::size_t>(o)];
        for (int i = 0; i < inputs; ++i) expected += ws[at(o, i, inputs)] * xs[at(i, b, batch)];
        // A GPU stores the product, then adds the bias, which is at most 1.
        ASSERT_NEAR(ys[at(o, b, batch)], expected, tolerance(inputs) + device_.stored(std::abs(expected) + 1, 2))
            << outputs << "x" << inputs << "x" << batch;
      }
  }
}

TEST_P(OpsTest, DenseBackwardDataIsTransposedWeightTimesGradient) {
  for (const auto [outputs, inputs, batch] : kShapes) {
    const Tensor dy = device_.tensor(outputs, batch), dx = device_.tensor(inputs, batch);
    const float* w = device_.parameters(at(outputs, 0, inputs));
    ops_.dense_backward_data(dx, dy, w);
    const auto dys = device_.rows(dy), dxs = device_.rows(dx), ws = device_.values(w, at(outputs, 0, inputs));
    for (int i = 0; i < inputs; ++i)
      for (int b = 0; b < batch; ++b) {
        double expected = 0;
        for (int o = 0; o < outputs; ++o) expected += ws[at(o, i, inputs)] * dys[at(o, b, batch)];
        ASSERT_NEAR(dxs[at(i, b, batch)], expected, tolerance(outputs) + device_.stored(expected))
            << outputs << "x" << inputs << "x" << batch;
      }
  }
}

TEST_P(OpsTest, DenseBackwardWeightsSumsOverTheBatchAndAccumulates) {
  for (const auto [outputs, inputs, batch] : kShapes) {
    const Tensor dy = device_.tensor(outputs, batch), x = device_.tensor(inputs, batch);
    const std::size_t weights = at(outputs, 0, inputs), biases = at(outputs, 0, 1);
    float *dw = device_.floats(weights), *db = device_.floats(biases);
    for (const int times : {1, 2}) {  // the first call overwrites, the second adds the same again
      ops_.dense_backward_weights(dw, db, dy, x, times == 2);
      const auto dys = device_.rows(dy), xs = device_.rows(x), dws = device_.values(dw, weights),
                 dbs = device_.values(db, biases);
      for (int o = 0; o < outputs; ++o) {
        double bias = 0;
        for (int b = 0; b < batch; ++b) bias += dys[at(o, b, batch)];
        ASSERT_NEAR(dbs[static_cast<std::size_t>(o)], times * bias, times * tolerance(batch));
        for (int i = 0; i < inputs; ++i) {
          double expected = 0;
          for (int b = 0; b < batch; ++b) expected += dys[at(o, b, batch)] * xs[at(i, b, batch)];
          ASSERT_NEAR(dws[at(o, i, inputs)], times * expected, times * tolerance(batch));
        }
      }
    }
  }
}

TEST_P(OpsTest, BatchNormNormalisesAndMovesTheRunningStatistics) {
  const int features = 5, batch = 33;
  const Tensor x = device_.tensor(features, batch, 2, 5), y = device_.tensor(features, batch);
  float *mean = device_.floats(5, 0, 0), *variance = device_.floats(5, 1, 1), *saved = device_.floats(10);
  const float momentum = 0.25F, slope = 0.2F;
  const BatchNormParameters normal{.scale = device_.floats(5, 2, 2),
                                   .shift = device_.floats(5, 1, 1),
                                   .running_mean = mean,
                                   .running_variance = variance,
                                   .mean = saved,
                                   .inverse_deviation = saved + 5,
                                   .momentum = momentum,
                                   .epsilon = 0,
                                   .slope = slope};
  ops_.batch_norm_leaky_forward(y, x, normal);
  const auto xs = device_.rows(x), ys = device_.rows(y), means = device_.values(mean, 5),
             variances = device_.values(variance, 5);
  for (int f = 0; f < features; ++f) {
    double sum = 0, squares = 0;
    for (int b = 0; b < batch; ++b) sum += xs[at(f, b, batch)];
    for (int b = 0; b < batch; ++b) squares += std::pow(xs[at(f, b, batch)] - sum / batch, 2);
    for (int b = 0; b < batch; ++b) {
      const double z = 2 * (xs[at(f, b, batch)] - sum / batch) / std::sqrt(squares / batch) + 1;
      EXPECT_NEAR(ys[at(f, b, batch)], z > 0 ? z : 0.2 * z, 1e-4 + device_.stored(z));
    }
    const auto i = static_cast<std::size_t>(f);
    EXPECT_NEAR(means[i], 0.75 * 0 + 0.25 * sum / batch, 1e-5);
    EXPECT_NEAR(variances[i], 0.75 * 1 + 0.25 * squares / (batch - 1), 1e-5);  // unbiased, as PyTorch's
  }
}

TEST_P(OpsTest, InferenceUsesTheRunningStatisticsAndLeavesThem) {
  const Tensor x = device_.tensor(1, 4), y = device_.tensor(1, 4);
  float *mean = device_.floats(1, 0.5, 0.5), *variance = device_.floats(1, 4, 4);
  ops_.batch_norm_leaky_inference(y, x,
                                  {.scale = device_.floats(1, 3, 3),
                                   .shift = device_.floats(1, 0, 0),
                                   .running_mean = mean,
                                   .running_variance = variance,
                                   .mean = nullptr,
                                   .inverse_deviation = nullptr,
                                   .momentum = 0.1F,
                                   .epsilon = 0,
                                   .slope = 0.2F});
  const auto xs = device_.values(x), ys = device_.values(y);
  for (std::size_t i = 0; i < 4; ++i) {
    const double z = 3 * (xs[i] - 0.5) / 2;  // deviation sqrt(4)
    EXPECT_NEAR(ys[i], z > 0 ? z : 0.2 * z, 1e-6 + device_.stored(z));
  }
  EXPECT_EQ(device_.values(mean, 1)[0], 0.5);
  EXPECT_EQ(device_.values(variance, 1)[0], 4.0);
}

TEST_P(OpsTest, DropoutKeepsItsShareAndScalesIt) {
  const Tensor x = device_.tensor(300, 100, 1, 1);
  const Mask mask = device_.mask(300, 100);
  RandomStream random(3, "tests/dropout");
  ops_.leaky_dropout_forward(x, mask, {.slope = 0.2F, .keep = 0.7F}, random);
  std::size_t kept = 0;
  for (const double value : device_.values(x)) {
    ASSERT_TRUE(value == 0 || std::abs(value - 1 / 0.7) < 1e-6 + device_.stored(1 / 0.7)) << value;
    kept += value != 0 ? 1 : 0;
  }
  // Binomial: within five standard deviations of 0.7 n.
  const double n = 30'000;
  EXPECT_NEAR(static_cast<double>(kept), 0.7 * n, 5 * std::sqrt(n * 0.7 * 0.3));
}

// The operation that does both draws the same mask as dropout alone; x and dx are what the two operations leave.
TEST_P(OpsTest, LogitIsDropoutThenADenseLayer) {
  const int features = 37, batch = 11;
  const LeakyDropoutParameters dropout{.slope = 0.2F, .keep = 0.7F};
  const Tensor x = device_.tensor(features, batch), same = device_.tensor(features, batch);
  const Tensor y = device_.tensor(1, batch), expected_y = device_.tensor(1, batch), dy = device_.tensor(1, batch);
  const Tensor dx = device_.tensor(features, batch), expected_dx = device_.tensor(features, batch);
  const Mask mask = device_.mask(features, batch), expected_mask = device_.mask(features, batch);
  const float *weight = device_.parameters(features), *bias = device_.parameters(1);
  ops_.combine(same, 1, x, 0);
  RandomStream random(5, "tests/dropout"), again(5, "tests/dropout");
  ops_.logit_forward(y, x, mask, dropout, {weight, bias}, random);
  ops_.leaky_dropout_forward(same, expected_mask, dropout, again);
  ops_.dense_forward(expected_y, same, {weight, bias});
  EXPECT_EQ(random.next(), again.next());
  EXPECT_EQ(device_.values(x), device_.values(same));
  // A GPU stores x, y and the gradient at the logits in its own type; the two ways round at different places.
  const auto expect_near = [&](const std::vector<double>& a, const std::vector<double>& b) {
    for (std::size_t i = 0; i < b.size(); ++i)
      EXPECT_NEAR(a.at(i), b[i], tolerance(features) * (1 + std::abs(b[i])) + device_.stored(std::abs(b[i]) + 1, 2))
          << i;
  };
  expect_near(device_.values(y), device_.values(expected_y));

  // Weights, bias, and the bias of a layer before; the second call adds to the first.
  float *found = device_.floats(2 * features + 1), *expected = device_.floats(2 * features + 1);
  for (const bool accumulate : {false, true}) {
    ops_.logit_backward(dx, dy, x, mask, dropout, weight, {found, found + features, found + features + 1}, accumulate);
    ops_.dense_backward_weights(expected, expected + features, dy, x, accumulate);
    ops_.dense_backward_data(expected_dx, dy, weight);
    ops_.leaky_dropout_backward(expected_dx, x, mask, dropout, expected + features + 1, accumulate);
    expect_near(device_.values(dx), device_.values(expected_dx));
    expect_near(device_.values(found, 2 * features + 1), device_.values(expected, 2 * features + 1));
  }
  const auto kept = device_.values(found, 2 * features + 1);
  ops_.fill(dx, 0);
  ops_.logit_backward(dx, dy, x, mask, dropout, weight, {}, false);
  expect_near(device_.values(dx), device_.values(expected_dx));
  EXPECT_EQ(device_.values(found, 2 * features + 1), kept);
}

TEST_P(OpsTest, WithoutDropoutOnlyTheLeakyReluRemains) {
  const Tensor x = device_.tensor(3, 7);
  const auto before = device_.values(x);
  RandomStream random(3, "tests/dropout");
  ops_.leaky_dropout_forward(x, device_.mask(3, 7), {.slope = 0.25F, .keep = 1}, random);
  const auto after = device_.values(x);
  for (std::size_t i = 0; i < before.size(); ++i) EXPECT_EQ(after[i], before[i] > 0 ? before[i] : 0.25 * before[i]);
}

TEST_P(OpsTest, SigmoidHoldsForLargeArguments) {
  const Tensor x = device_.tensor(1, 20, -5, 5);
  device_.set(x, 0, 90.0F);
  device_.set(x, 1, -80.0F);
  const auto before = device_.values(x);
  ops_.activate(x, kSigmoid);
  const auto after = device_.values(x);
  for (std::size_t i = 0; i < before.size(); ++i)
    EXPECT_NEAR(after[i], 1 / (1 + std::exp(-before[i])), 1e-6 + device_.stored(1));
}

TEST_P(OpsTest, CrossEntropyIsFiniteForAnyLogit) {
  const Tensor logits = device_.tensor(1, 2, 0, 0), gradient = device_.tensor(1, 2);
  float* loss = device_.floats(1);
  device_.set(logits, 0, 9984);  // is a number of bf16 too
  device_.set(logits, 1, -9984);
  ops_.adversarial_loss(loss, gradient, logits, LossTerm::cross_entropy_real);
  // -log sigmoid(9984) = 0 and -log sigmoid(-9984) = 9984, on average half of it.
  EXPECT_NEAR(device_.values(loss, 1)[0], 9984.0 / 2, 1e-3);
  EXPECT_NEAR(device_.values(gradient)[0], 0, 1e-7);
  EXPECT_NEAR(device_.values(gradient)[1], -0.5, 1e-7);
}

TEST_P(OpsTest, AdamFollowsItsRule) {
  const AdamParameters rule{.learning_rate = 0.01F, .beta1 = 0.8F, .beta2 = 0.95F, .epsilon = 1e-8F};
  const std::size_t count = 40'003;  // more than one chunk, and a tail
  float *p = device_.floats(count), *m = device_.floats(count, 0, 0), *v = device_.floats(count, 0, 0);
  const auto initial = device_.values(p, count);
  std::vector<double> first(count, 0), second(count, 0), expected = initial;
  for (int step = 1; step <= 3; ++step) {
    const float* g = device_.floats(count);
    const auto gradients = device_.values(g, count);
    ops_.adam(p, g, m, v, count, rule, step);
    for (std::size_t i = 0; i < count; ++i) {
      const double gradient = gradients[i];
      first[i] = 0.8 * first[i] + 0.2 * gradient;
      second[i] = 0.95 * second[i] + 0.05 * gradient * gradient;
      const double corrected = first[i] / (1 - std::pow(0.8, step)),
                   root = std::sqrt(second[i] / (1 - std::pow(0.95, step)));
      expected[i] -= 0.01 * corrected / (root + 1e-8);
    }
  }
  const auto result = device_.values(p, count);
  // Three steps of at most 0.01 each with a relative error of single precision; near-zero gradients amplify it most.
  for (std::size_t i = 0; i < count; ++i) ASSERT_NEAR(result[i], expected[i], 2e-5) << i;
}

TEST_P(OpsTest, ImagesAreScaledAndTurnedFeatureMajor) {
  const int features = 19, batch = 18;
  std::vector<std::uint8_t> pixels(static_cast<std::size_t>(features * batch));
  for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<std::uint8_t>(i % 256);
  const Tensor x = device_.tensor(features, batch);
  ops_.load_images(x, pixels, 0, features);
  const auto values = device_.rows(x);
  for (int b = 0; b < batch; ++b)
    for (int f = 0; f < features; ++f)
      ASSERT_NEAR(values[at(f, b, batch)], pixels[at(b, f, features)] / 255.0, 1e-7 + device_.stored(1));
}

TEST_P(OpsTest, CopyCopies) {
  const float* from = device_.floats(50'001);
  float* to = device_.floats(50'001);
  ops_.copy(to, from, 50'001);
  EXPECT_EQ(device_.values(to, 50'001), device_.values(from, 50'001));
  const Tensor x = device_.tensor(7, 9), y = device_.tensor(7, 9);
  ops_.copy(y, x);
  EXPECT_EQ(device_.values(y), device_.values(x));
}

// Products may read copies of the parameters in the tensors' type; whatever writes parameters must write these too.
TEST_P(OpsTest, ProductsReadParametersAsTheyWereLastWritten) {
  const int size = 6;
  const std::size_t count = 36, first = 4;
  float *all = device_.parameters(count + first), *weight = all + first;
  const Tensor unit = device_.tensor(size, size, 0, 0), y = device_.tensor(size, size);
  for (std::size_t i = 0; i < count; i += size + 1) device_.set(unit, i, 1);
  const auto expect_read = [&](const char* what) {
    ops_.dense_forward(y, unit, {weight, nullptr});
    const auto ys = device_.rows(y), ws = device_.values(weight, count);
    for (std::size_t i = 0; i < count; ++i) EXPECT_NEAR(ys[i], ws[i], 1e-7 + device_.stored(ws[i])) << what << " " << i;
  };
  expect_read("write");
  ops_.copy(weight, device_.floats(count), count);
  expect_read("copy");
  ops_.average(weight, device_.floats(count), count, 0.25F);
  expect_read("average");
  float* moments = device_.floats(2 * (count + first), 0, 0);
  ops_.adam(all, device_.floats(count + first), moments, moments + count + first, count + first,
            {.learning_rate = 0.5F}, 1);
  expect_read("adam");
}

TEST(Parameters, AreForgottenWithTheirMemory) {
  const auto backend = make_hosted_bf16_backend();
  const Buffer kept = backend->ops->allocate_parameters(64);
  EXPECT_EQ(kept.bytes(), 64 * (sizeof(float) + 2));
  Buffer passing = backend->ops->allocate_parameters(16);
  std::vector<float> ones(16, 1);
  backend->ops->write(passing.floats(), ones);
  const std::int64_t launched = backend->ops->launched();
  passing = {};
  Buffer plain = backend->ops->allocate(1024);
  backend->ops->write(plain.floats(), ones);
  EXPECT_EQ(backend->ops->launched(), launched);  // nothing brings a copy up to date that is gone
}

TEST_P(OpsTest, WorkIsCountedPerOperation) {
  const Tensor x = device_.tensor(5, 8), y = device_.tensor(3, 8);
  const float *w = device_.parameters(3 * 5), *bias = device_.parameters(3);
  const Work before = ops_.work();
  ops_.dense_forward(y, x, {w, bias});
  const Work work = ops_.work() - before;
  EXPECT_EQ(work.launches, ops_.timeline().has_clock() ? 1 : 0);  // a GPU's product adds the bias; the CPU has none
  EXPECT_EQ(work.flops, 2.0 * 3 * 5 * 8);
  const auto width = static_cast<double>(bytes_of(ops_.element_type()));
  EXPECT_EQ(work.bytes_read, width * (3 * 5 + 5 * 8) + 4.0 * 3);
  EXPECT_EQ(work.bytes_written, width * (3 * 8));
  EXPECT_EQ(work.seconds, 0);  // times are measured only on request
}

}  // namespace
}  // namespace ganymede::kernel
