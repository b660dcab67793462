#pragma once
// How the stand-in computes convolutions.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "kernel/compression_codes.hpp"
#include "kernel/ops/cuda/direct_convolution.hpp"

namespace ganymede::kernel::stand_in {

/// The operands of a convolution in fp32: themselves, or a copy of bf16 numbers.
class InSingles {
 public:
  InSingles(void* from, std::size_t count, bool halves) : from_(from), halves_(halves) {
    if (!halves) return;
    copy_.resize(count);
    for (std::size_t i = 0; i < count; ++i) copy_[i] = from_bf16(static_cast<const std::uint16_t*>(from)[i]);
  }
  float* data() { return halves_ ? copy_.data() : static_cast<float*>(from_); }
  void write_back() {
    for (std::size_t i = 0; i < copy_.size(); ++i) static_cast<std::uint16_t*>(from_)[i] = to_bf16(copy_[i]);
  }

 private:
  void* from_;
  bool halves_;
  std::vector<float> copy_;
};

/// Computes the result of a pass by going through all pairs of a pixel of y and a tap, the outputs outermost, so that a
/// filter stays in the processor's cache.
inline void convolve_on_host(const cuda::ConvolutionCall& call) {
  const cuda::DirectConvolution<float> d(call);
  float* const weights = d.d_weight;
  const std::size_t channels = d.channels, taps = d.kernel_frames * d.kernel * d.kernel;
  if (call.pass == cuda::Pass::forward) std::fill_n(d.y, d.y_size(), 0.0F);
  if (call.pass == cuda::Pass::data) std::fill_n(d.x, d.x_size(), 0.0F);
  if (call.pass == cuda::Pass::weights && !call.accumulate) std::fill_n(weights, d.weight_size(), 0.0F);
  const auto visit = [&](float* x, float& y, float* weight) {
    float sum = 0;
    switch (call.pass) {
      case cuda::Pass::forward:
        for (std::size_t c = 0; c < channels; ++c) sum += weight[c] * x[c];
        y += sum;
        return;
      case cuda::Pass::data:
        for (std::size_t c = 0; c < channels; ++c) x[c] += y * weight[c];
        return;
      case cuda::Pass::weights:
        for (std::size_t c = 0; c < channels; ++c) weight[c] += y * x[c];
        return;
    }
  };
  const std::size_t pixels = d.batch * d.out_frames * d.out_height * d.out_width;
  for (std::size_t o = 0; o < d.outputs; ++o)
    for (std::size_t pixel = 0; pixel < pixels; ++pixel) {
      const std::size_t column = pixel % d.out_width, above = pixel / d.out_width, row = above % d.out_height;
      const std::size_t frame = above / d.out_height % d.out_frames, image = above / d.out_height / d.out_frames;
      for (std::size_t tap = 0; tap < taps; ++tap) {
        const std::size_t t = tap / (d.kernel * d.kernel), r = tap / d.kernel % d.kernel, s = tap % d.kernel;
        const float* x = d.input_of_tap(image, frame, row, column, t, r, s);
        if (x != nullptr)
          visit(const_cast<float*>(x), d.y[pixel * d.outputs + o], weights + (o * taps + tap) * channels);
      }
    }
}

}  // namespace ganymede::kernel::stand_in
