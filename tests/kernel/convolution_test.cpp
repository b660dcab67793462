// Compares convolutions and both of their gradients with their definition in double precision, on shapes that are no
// multiple of a vector or tile.

#include <gtest/gtest.h>

#include <functional>

#include "kernel/ops/tensor_ops.hpp"
#include "test_device.hpp"

namespace ganymede::kernel {
namespace {

struct Case {
  ConvolutionShape shape;
  int batch;
};

// Kernel 4 with stride 2, and kernels as large as the image, as in DCGAN; strides that leave a remainder; padding
// larger than needed; one channel, one pixel; more channels than a panel is deep; batches below, at and above a
// vector's width.
constexpr Case kCases[] = {
    {{3, 8, 8, 5, 4, 2, 1}, 7},
    {{2, 6, 10, 3, 4, 2, 1}, 16},
    {{5, 4, 4, 7, 4, 1, 0}, 3},
    {{1, 5, 7, 1, 3, 1, 1}, 1},
    {{4, 9, 9, 6, 3, 2, 0}, 5},
    {{3, 7, 5, 2, 3, 3, 1}, 2},
    {{2, 3, 3, 4, 5, 1, 4}, 6},
    {{130, 2, 2, 9, 2, 1, 0}, 19},
    {{9, 4, 4, 260, 4, 2, 1}, 64},
    {{16, 8, 8, 32, 4, 2, 1}, 80},
    {{1, 1, 1, 3, 1, 1, 0}, 33},
    {{6, 8, 8, 8, 8, 1, 0}, 4},
    // Clips: the same number of frames, fewer frames, and one channel more than a panel is deep.
    {{3, 4, 5, 2, 3, 1, 1, 4, 3, 1}, 5},
    {{2, 6, 6, 5, 4, 2, 1, 5, 2, 0}, 9},
    {{130, 2, 2, 3, 3, 1, 1, 2, 3, 1}, 3},
};

class ConvolutionTest : public testing::TestWithParam<BackendCase> {
 protected:
  TestDevice device_{GetParam(), 7};
  TensorOps& ops_ = device_.ops();

  /// Calls visit(weight, input, output) with the indices of every product of an image of the batch.
  static void products(const Case& item, const std::function<void(std::size_t, std::size_t, std::size_t)>& visit) {
    const ConvolutionShape& s = item.shape;
    const auto index = [](int value) { return static_cast<std::size_t>(value); };
    for (int o = 0; o < s.out_channels; ++o)
      for (int c = 0; c < s.in_channels; ++c)
        for (int tap = 0; tap < s.taps(); ++tap)
          for (int out = 0; out < s.out_frames() * s.out_height() * s.out_width(); ++out) {
            const int k = tap / s.kernel / s.kernel, i = tap / s.kernel % s.kernel, j = tap % s.kernel;
            const int f = out / s.out_width() / s.out_height(), y = out / s.out_width() % s.out_height(),
                      x = out % s.out_width();
            const int frame = f + k - s.padding_frames, row = y * s.stride + i - s.padding,
                      column = x * s.stride + j - s.padding;
            if (frame < 0 || frame >= s.in_frames || row < 0 || row >= s.in_height || column < 0 ||
                column >= s.in_width)
              continue;
            for (int n = 0; n < item.batch; ++n)
              visit(index((o * s.in_channels + c) * s.taps() + tap),
                    index((((c * s.in_frames + frame) * s.in_height + row) * s.in_width + column) * item.batch + n),
                    index((((o * s.out_frames() + f) * s.out_height() + y) * s.out_width() + x) * item.batch + n));
          }
  }

  /// Each sum has at most `terms` products of numbers within 1.
  void expect_near(const std::vector<double>& found, const std::vector<double>& expected, double terms,
                   const Case& item) {
    ASSERT_EQ(found.size(), expected.size());
    for (std::size_t i = 0; i < found.size(); ++i)
      ASSERT_NEAR(found[i], expected[i], 2e-7 * terms + 1e-6 + device_.stored(expected[i]))
          << "element " << i << " of " << item.shape.in_channels << " -> " << item.shape.out_channels << ", batch "
          << item.batch;
  }
};

INSTANTIATE_TEST_SUITE_P(AllBackends, ConvolutionTest, testing::ValuesIn(backends()),
                         [](const auto& instance) { return instance.param.name; });

TEST_P(ConvolutionTest, ForwardAndBothGradientsAreTheirDefinitions) {
  for (const Case& item : kCases) {
    const ConvolutionShape& shape = item.shape;
    ops_.reserve_workspace(ops_.convolution_workspace_bytes(shape, item.batch));
    const Tensor x = device_.tensor(shape.in_features(), item.batch),
                 y = device_.tensor(shape.out_features(), item.batch),
                 dy = device_.tensor(shape.out_features(), item.batch),
                 dx = device_.tensor(shape.in_features(), item.batch);
    float *w = device_.parameters(shape.weights()), *dw = device_.floats(shape.weights());
    const auto xs = device_.rows(x, shape.in_channels), dys = device_.rows(dy, shape.out_channels),
               ws = device_.weights(w, shape), before = device_.weights(dw, shape);
    std::vector<double> ys(y.size()), dxs(dx.size()), dws(shape.weights());
    products(item, [&](std::size_t weight, std::size_t input, std::size_t output) {
      ys[output] += ws[weight] * xs[input];
      dxs[input] += ws[weight] * dys[output];
      dws[weight] += dys[output] * xs[input];
    });
    const double taps = shape.kernel * shape.kernel;

    ops_.convolve(y, x, shape, w);
    expect_near(device_.rows(y, shape.out_channels), ys, shape.in_channels * taps, item);
    ops_.convolve_backward_data(dx, dy, shape, w);
    expect_near(device_.rows(dx, shape.in_channels), dxs, shape.out_channels * taps, item);
    const double positions = static_cast<double>(dy.size()) / shape.out_channels;
    ops_.convolve_backward_weights(dw, dy, x, shape, true);
    for (std::size_t i = 0; i < dws.size(); ++i) dws[i] += before[i];
    expect_near(device_.weights(dw, shape), dws, positions, item);
    ops_.convolve_backward_weights(dw, dy, x, shape, false);
    for (std::size_t i = 0; i < dws.size(); ++i) dws[i] -= before[i];
    expect_near(device_.weights(dw, shape), dws, positions, item);
  }
}

// Every thread sums an element's terms in the same order.
TEST(Convolution, ResultsDoNotDependOnThreads) {
  const ConvolutionShape shape{64, 8, 8, 96, 4, 2, 1};
  std::vector<std::vector<float>> results;
  for (const int threads : {1, 2, 3}) {
    TestDevice device({"eigen", [=] { return make_eigen_backend(threads); }}, 3);
    device.ops().reserve_workspace(device.ops().convolution_workspace_bytes(shape, 10));
    const Tensor x = device.tensor(shape.in_features(), 10), y = device.tensor(shape.out_features(), 10);
    float* w = device.floats(shape.weights());
    device.ops().convolve(y, x, shape, w);
    results.push_back(device.singles(y));
    device.ops().convolve_backward_data(x, y, shape, w);
    const auto dx = device.singles(x);
    results.back().insert(results.back().end(), dx.begin(), dx.end());
    device.ops().convolve_backward_weights(w, y, x, shape, false);
    const auto dw = device.singles(w, shape.weights());
    results.back().insert(results.back().end(), dw.begin(), dw.end());
  }
  EXPECT_EQ(results[0], results[1]);
  EXPECT_EQ(results[0], results[2]);
}

/// Compares a convolution and what follows as one operation with both as two. Numbers may differ by `tolerance` of
/// their size, and by what storing them rounds.
void expect_same_in_one_operation(TestDevice& device, const Case& item, double tolerance) {
  TensorOps& ops = device.ops();
  const ConvolutionShape& shape = item.shape;
  const Tensor x = device.tensor(shape.in_features(), item.batch);
  const Tensor apart = device.tensor(shape.out_features(), item.batch);
  const Tensor together = device.tensor(shape.out_features(), item.batch);
  const float* weight = device.parameters(shape.weights());
  const float* bias = device.parameters(static_cast<std::size_t>(shape.out_channels));
  ops.reserve_workspace(ops.convolution_workspace_bytes(shape, item.batch));
  const auto expect_same = [&] {
    const auto expected = device.values(apart), found = device.values(together);
    for (std::size_t i = 0; i < found.size(); ++i)
      ASSERT_NEAR(found[i], expected[i], tolerance * (1 + std::abs(expected[i])) + device.stored(1 + expected[i], 2));
  };
  ops.convolve(apart, x, shape, weight);
  ops.bias_leaky_forward(apart, bias, shape.out_channels, 0.5F, 0.2F);
  ops.convolve(together, x, shape, weight, {bias, 0.5F, 0.2F});
  expect_same();
  ops.convolve(apart, x, shape, weight);
  ops.activate(apart, leaky_relu(0.2F));
  ops.convolve(together, x, shape, weight, {.slope = 0.2F});
  expect_same();
}

TEST_P(ConvolutionTest, IsTheSameWithWhatFollowsInOneOperation) {
  for (const Case& item : kCases) expect_same_in_one_operation(device_, item, 1e-5);
}

// Runs on a GPU, where both are one kernel of cuDNN's.
TEST(FusedGpuSteps, OfAConvolutionAreThoseOfTwoKernels) {
  if (count_gpus().count == 0) GTEST_SKIP() << count_gpus().why_none;
  for (const Precision precision : {Precision::tf32, Precision::bf16}) {
    TestDevice device(
        {"",
         [precision] { return open_cuda_backend({.precision = precision, .graph = false, .least_fused_outputs = 0}); }},
        7);
    for (const Case& item : {Case{{16, 8, 8, 32, 4, 2, 1}, 80}, Case{{2, 6, 6, 5, 4, 2, 1, 5, 2, 0}, 9}})
      expect_same_in_one_operation(device, item, 5e-3);  // of ten bits of mantissa
  }
}

}  // namespace
}  // namespace ganymede::kernel
