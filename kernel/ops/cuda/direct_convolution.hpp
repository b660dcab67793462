#pragma once
// Convolutions by their definition, one element of the result at a time. Used on a GPU where cuDNN has no algorithm,
// and in tests on the CPU in place of cuDNN.

#include "kernel/ops/cuda/device_calls.hpp"
#include "kernel/ops/cuda/vectors.hpp"

namespace ganymede::kernel::cuda {

/// E is the type of the elements of x, y and, as an operand, the weights.
template <class E>
struct DirectConvolution {
  std::size_t batch, channels, frames, height, width;  ///< extents of x
  std::size_t outputs, out_frames, out_height, out_width;
  std::size_t kernel_frames, kernel, stride, padding, padding_frames;
  E *x, *y;
  const E* weight;  ///< as an operand
  float* d_weight;  ///< as the result of Pass::weights
  bool accumulate;

  explicit DirectConvolution(const ConvolutionCall& call)
      : batch(size_of(call.batch)),
        channels(size_of(call.shape.in_channels)),
        frames(size_of(call.shape.in_frames)),
        height(size_of(call.shape.in_height)),
        width(size_of(call.shape.in_width)),
        outputs(size_of(call.shape.out_channels)),
        out_frames(size_of(call.shape.out_frames())),
        out_height(size_of(call.shape.out_height())),
        out_width(size_of(call.shape.out_width())),
        kernel_frames(size_of(call.shape.kernel_frames)),
        kernel(size_of(call.shape.kernel)),
        stride(size_of(call.shape.stride)),
        padding(size_of(call.shape.padding)),
        padding_frames(size_of(call.shape.padding_frames)),
        x(static_cast<E*>(call.x)),
        y(static_cast<E*>(call.y)),
        weight(static_cast<const E*>(call.weight)),
        d_weight(static_cast<float*>(call.weight)),
        accumulate(call.accumulate) {}

  GANYMEDE_DEVICE std::size_t x_size() const { return batch * frames * height * width * channels; }
  GANYMEDE_DEVICE std::size_t y_size() const { return batch * out_frames * out_height * out_width * outputs; }
  GANYMEDE_DEVICE std::size_t weight_size() const { return outputs * kernel_frames * kernel * kernel * channels; }

  /// Address in x of channel 0 of the pixel that tap (t, r, s) reads for an output at (frame, row, column); null:
  /// padding.
  GANYMEDE_DEVICE const E* input_of_tap(std::size_t image, std::size_t frame, std::size_t row, std::size_t column,
                                        std::size_t t, std::size_t r, std::size_t s) const {
    // Before the edge the unsigned difference wraps around to a large number, which is outside as well.
    const std::size_t f = frame + t - padding_frames, y_in = row * stride + r - padding;
    const std::size_t x_in = column * stride + s - padding;
    if (f >= frames || y_in >= height || x_in >= width) return nullptr;
    return x + (((image * frames + f) * height + y_in) * width + x_in) * channels;
  }

  /// Computes element i of y.
  GANYMEDE_DEVICE void forward(std::size_t i) const {
    const std::size_t o = i % outputs, column = i / outputs % out_width, above = i / outputs / out_width;
    const std::size_t row = above % out_height, frame = above / out_height % out_frames;
    const std::size_t image = above / out_height / out_frames;
    float sum = 0;
    for (std::size_t t = 0; t < kernel_frames; ++t)
      for (std::size_t r = 0; r < kernel; ++r)
        for (std::size_t s = 0; s < kernel; ++s) {
          const E* from = input_of_tap(image, frame, row, column, t, r, s);
          if (from == nullptr) continue;
          const E* w = weight + (((o * kernel_frames + t) * kernel + r) * kernel + s) * channels;
          for (std::size_t c = 0; c < channels; ++c) sum += w[c] * from[c];
        }
    y[i] = sum;
  }

  /// Computes element i of the gradient of x, written to x.
  GANYMEDE_DEVICE void data(std::size_t i) const {
    const std::size_t c = i % channels, column = i / channels % width, above = i / channels / width;
    const std::size_t row = above % height, frame = above / height % frames, image = above / height / frames;
    const auto step = static_cast<unsigned>(stride);
    float sum = 0;
    for (std::size_t t = 0; t < kernel_frames; ++t)
      for (std::size_t r = 0; r < kernel; ++r)
        for (std::size_t s = 0; s < kernel; ++s) {
          const std::size_t f = frame + padding_frames - t;
          // Before the first row or column these wrap to beyond the last; 64 bits would be divided by a function.
          const auto y_up = static_cast<unsigned>(row + padding - r),
                     x_up = static_cast<unsigned>(column + padding - s);
          const unsigned out_row = y_up / step, out_column = x_up / step;
          if (f >= out_frames || y_up != out_row * step || x_up != out_column * step || out_row >= out_height ||
              out_column >= out_width)
            continue;
          const std::size_t at = ((image * out_frames + f) * out_height + out_row) * out_width + out_column;
          const E* from = y + at * outputs;
          const E* w = weight + ((t * kernel + r) * kernel + s) * channels + c;
          const std::size_t next = kernel_frames * kernel * kernel * channels;
          for (std::size_t o = 0; o < outputs; ++o) sum += w[o * next] * from[o];
        }
    x[i] = sum;
  }

  /// Computes element i of the gradient of the weights, written to weight.
  GANYMEDE_DEVICE void weights(std::size_t i) const {
    const std::size_t c = i % channels, s = i / channels % kernel, above = i / channels / kernel;
    const std::size_t r = above % kernel, t = above / kernel % kernel_frames, o = above / kernel / kernel_frames;
    float sum = 0;
    for (std::size_t image = 0; image < batch; ++image)
      for (std::size_t frame = 0; frame < out_frames; ++frame)
        for (std::size_t row = 0; row < out_height; ++row)
          for (std::size_t column = 0; column < out_width; ++column) {
            const E* from = input_of_tap(image, frame, row, column, t, r, s);
            if (from == nullptr) continue;
            sum += from[c] * y[(((image * out_frames + frame) * out_height + row) * out_width + column) * outputs + o];
          }
    d_weight[i] = (accumulate ? d_weight[i] : 0.0F) + sum;
  }
};

/// The operation after a convolution, as a kernel. E is the type of the elements of y.
template <class E, class Device>
void apply_epilogue(Device& device, const ConvolutionCall& call) {
  const ConvolutionEpilogue after = *call.after;
  const Divisor channels(size_of(call.shape.out_channels));
  each_element(
      device, size_of(call.shape.out_features()) * size_of(call.batch),
      [=] GANYMEDE_DEVICE(std::size_t i, E & v) {
        v = leaky(v * after.factor + (after.bias == nullptr ? 0.0F : after.bias[i % channels]), after.slope);
      },
      static_cast<E*>(call.y));
}

/// Runs the convolution with the device's `each`.
template <class E, class Device>
void convolve_directly(Device& device, const ConvolutionCall& call) {
  const DirectConvolution<E> direct(call);
  switch (call.pass) {
    case Pass::forward:
      device.each(direct.y_size(), [=] GANYMEDE_DEVICE(std::size_t i) { direct.forward(i); });
      if (call.after) apply_epilogue<E>(device, call);
      return;
    case Pass::data:
      return device.each(direct.x_size(), [=] GANYMEDE_DEVICE(std::size_t i) { direct.data(i); });
    case Pass::weights:
      return device.each(direct.weight_size(), [=] GANYMEDE_DEVICE(std::size_t i) { direct.weights(i); });
  }
}

}  // namespace ganymede::kernel::cuda
