#pragma once
// Element-wise operations on a GPU: activations, optimizer, images, compression. Arguments as in TensorOps.

#include <algorithm>
#include <type_traits>
#include <vector>

#include "kernel/adam_rule.hpp"
#include "kernel/compression.hpp"
#include "kernel/compression_codes.hpp"
#include "kernel/ops/cuda/timeline.hpp"

namespace ganymede::kernel::cuda {

template <class E, class Device>
void activate(Timeline<Device>& timeline, Tensor x, Activation activation) {
  E* v = elements_of<E>(x);
  const float slope = activation.slope;
  switch (activation.kind) {
    case Activation::Kind::leaky_relu:
      return timeline.each(x.size(), [=] GANYMEDE_DEVICE(std::size_t i) { v[i] = leaky(v[i], slope); });
    case Activation::Kind::tanh:
      return timeline.each(x.size(), [=] GANYMEDE_DEVICE(std::size_t i) { v[i] = tanhf(v[i]); });
    case Activation::Kind::sigmoid:
      return timeline.each(x.size(), [=] GANYMEDE_DEVICE(std::size_t i) { v[i] = 1 / (1 + expf(-v[i])); });
  }
}

template <class E, class Device>
void activate_backward(Timeline<Device>& timeline, Tensor dy, Tensor y, Activation activation) {
  E* g = elements_of<E>(dy);
  const E* out = elements_of<E>(y);
  const float slope = activation.slope;
  switch (activation.kind) {
    case Activation::Kind::leaky_relu:
      return timeline.each(dy.size(), [=] GANYMEDE_DEVICE(std::size_t i) { g[i] *= leaky_slope(out[i], slope); });
    case Activation::Kind::tanh:
      return timeline.each(dy.size(), [=] GANYMEDE_DEVICE(std::size_t i) { g[i] *= 1 - out[i] * out[i]; });
    case Activation::Kind::sigmoid:
      return timeline.each(dy.size(), [=] GANYMEDE_DEVICE(std::size_t i) { g[i] *= out[i] * (1 - out[i]); });
  }
}

/// The derivative of leaky_dropout_forward at element i.
template <class E>
struct LeakyDropoutSlope {
  const E* out;  ///< its results
  const std::uint8_t* kept;
  float inverse_keep, slope;

  GANYMEDE_DEVICE float operator()(std::size_t i) const {
    return (static_cast<float>(kept[i]) * inverse_keep) * leaky_slope(out[i], slope);
  }
};

template <class E, class Device>
void leaky_dropout_backward(Timeline<Device>& timeline, Tensor dy, Tensor y, Mask mask, LeakyDropoutParameters p,
                            float* d_bias, bool accumulate) {
  E* g = elements_of<E>(dy);
  const LeakyDropoutSlope<E> slope_of{elements_of<E>(y), mask.data, 1.0F / p.keep, p.slope};
  if (d_bias == nullptr) return timeline.each(dy.size(), [=] GANYMEDE_DEVICE(std::size_t i) { g[i] *= slope_of(i); });
  const std::size_t width = size_of(dy.features);
  timeline.template columns<1>(
      dy.batch, dy.features,
      [=] GANYMEDE_DEVICE(std::size_t row, std::size_t c) {
        const std::size_t i = row * width + c;
        return Sums<1>{{g[i] * slope_of(i)}};
      },
      [=] GANYMEDE_DEVICE(std::size_t c, const Sums<1>& sums) {
        d_bias[c] = (accumulate ? d_bias[c] : 0.0F) + sums.of[0];
      },
      [=] GANYMEDE_DEVICE(std::size_t row, std::size_t c) {
        const std::size_t i = row * width + c;
        g[i] *= slope_of(i);
      });
}

template <class E, class Device>
void logit_backward(Timeline<Device>& timeline, Tensor dx, Tensor dy, Tensor x, Mask mask, LeakyDropoutParameters p,
                    const float* weight, const LogitGradients& d, bool accumulate) {
  const LogitGradients to = d;
  const E *in = elements_of<E>(x), *g = elements_of<E>(dy);
  const LeakyDropoutSlope<E> slope_of{in, mask.data, 1.0F / p.keep, p.slope};
  E* out = elements_of<E>(dx);
  const Divisor width(size_of(x.features));
  if (d.weight == nullptr)
    return timeline.each(
        dx.size(), [=] GANYMEDE_DEVICE(std::size_t i) { out[i] = g[i / width] * weight[i % width] * slope_of(i); });
  timeline.template columns<3>(
      x.batch, x.features,
      [=] GANYMEDE_DEVICE(std::size_t row, std::size_t c) {
        const std::size_t i = row * width + c;
        return Sums<3>{{g[row] * in[i], g[row] * weight[c] * slope_of(i), g[row]}};
      },
      [=] GANYMEDE_DEVICE(std::size_t c, const Sums<3>& sums) {
        to.weight[c] = (accumulate ? to.weight[c] : 0.0F) + sums.of[0];
        if (to.input_bias != nullptr) to.input_bias[c] = (accumulate ? to.input_bias[c] : 0.0F) + sums.of[1];
        if (c == 0) *to.bias = (accumulate ? *to.bias : 0.0F) + sums.of[2];
      },
      [=] GANYMEDE_DEVICE(std::size_t row, std::size_t c) {
        const std::size_t i = row * width + c;
        out[i] = g[row] * weight[c] * slope_of(i);
      });
}

template <class E, class Device>
void bias_leaky_forward(Timeline<Device>& timeline, Tensor x, const float* bias, int channels, float factor,
                        float slope) {
  E* v = elements_of<E>(x);
  const Divisor width(size_of(channels));
  timeline.each(x.size(), [=] GANYMEDE_DEVICE(std::size_t i) { v[i] = leaky(v[i] * factor + bias[i % width], slope); });
}

template <class E, class Device>
void bias_leaky_backward(Timeline<Device>& timeline, Tensor dy, Tensor y, float* d_bias, int channels, float factor,
                         float slope, bool accumulate) {
  E* g = elements_of<E>(dy);
  const E* out = elements_of<E>(y);
  const std::size_t width = size_of(channels);
  if (d_bias == nullptr)
    return timeline.each(dy.size(),
                         [=] GANYMEDE_DEVICE(std::size_t i) { g[i] *= factor * leaky_slope(out[i], slope); });
  timeline.template columns<1>(
      static_cast<int>(dy.size() / width), channels,
      [=] GANYMEDE_DEVICE(std::size_t row, std::size_t c) {
        return Sums<1>{{g[row * width + c] * leaky_slope(out[row * width + c], slope)}};
      },
      [=] GANYMEDE_DEVICE(std::size_t c, const Sums<1>& sums) {
        d_bias[c] = (accumulate ? d_bias[c] : 0.0F) + sums.of[0];
      },
      [=] GANYMEDE_DEVICE(std::size_t row, std::size_t c) {
        g[row * width + c] *= factor * leaky_slope(out[row * width + c], slope);
      });
}

template <class E, class Device>
void combine(Timeline<Device>& timeline, Tensor y, float a, Tensor x, float b) {
  const E* from = elements_of<E>(x);
  E* to = elements_of<E>(y);
  const StepWord first = timeline.step_word(a), second = timeline.step_word(b);
  timeline.each(y.size(), [=] GANYMEDE_DEVICE(std::size_t i) {
    const float scaled = first.number() * from[i], old = second.number();
    to[i] = old == 0 ? scaled : scaled + old * to[i];
  });
}

template <class E, class Device>
void fill(Timeline<Device>& timeline, Tensor x, float value) {
  E* v = elements_of<E>(x);
  timeline.each(x.size(), [=] GANYMEDE_DEVICE(std::size_t i) { v[i] = value; });
}

/// Brings copies of parameters up to date.
template <class Device>
void round_parameters(Timeline<Device>& timeline, Bf16* copy, const float* parameters, std::size_t count) {
  timeline.each(count, [=] GANYMEDE_DEVICE(std::size_t i) { copy[i] = parameters[i]; });
}

/// `copy`: of the parameters; null: there is none.
template <class Device>
void adam(Timeline<Device>& timeline, float* parameters, Bf16* copy, const float* gradients, float* first,
          float* second, std::size_t count, const AdamRule& by_value) {
  const AdamRule rule = by_value;
  const StepWord rate = timeline.step_word(rule.rate), root = timeline.step_word(rule.inverse_root);
  timeline.each(count, [=] GANYMEDE_DEVICE(std::size_t i) {
    const float g = gradients[i];
    const float m = rule.beta1 * first[i] + (1 - rule.beta1) * g;
    const float v = rule.beta2 * second[i] + (1 - rule.beta2) * g * g;
    first[i] = m;
    second[i] = v;
    const float moved = parameters[i] - rate.number() * m / (sqrtf(v) * root.number() + rule.epsilon);
    parameters[i] = moved;
    if (copy != nullptr) copy[i] = moved;
  });
}

template <class Device>
void average(Timeline<Device>& timeline, float* average, const float* values, std::size_t count, float decay) {
  const StepWord kept = timeline.step_word(decay);
  timeline.each(count,
                [=] GANYMEDE_DEVICE(std::size_t i) { average[i] += (1 - kept.number()) * (values[i] - average[i]); });
}

template <class E, class Device>
void load_images(Timeline<Device>& timeline, Tensor x, std::span<const std::uint8_t> host_pixels, float low,
                 int channels) {
  const StagedImages images = timeline.staged(host_pixels);
  const std::uint8_t* base = images.base;
  const StepWord slot = timeline.step_word(static_cast<std::uint32_t>(images.slot));
  const std::size_t stride = images.stride, positions = size_of(x.features / channels);
  const Divisor width(size_of(x.features)), depth(size_of(channels));
  const float factor = (1.0F - low) / 255.0F;
  E* out = elements_of<E>(x);
  timeline.each(x.size(), [=] GANYMEDE_DEVICE(std::size_t i) {
    const std::size_t image = i / width, position = i % width / depth, channel = i % depth;
    const std::uint8_t* from = base + slot.word() * stride;
    const std::size_t pixel = image * width + channel * positions + position;
    out[i] = static_cast<float>(from[pixel]) * factor + low;
  });
}

/// What a thread loads and stores at once.
struct alignas(16) SixteenBytes {
  std::uint32_t of[4];
};

/// Copies `count` values one by one.
template <class Value, class Device>
void copy_values(Timeline<Device>& timeline, void* to, const void* from, std::size_t count) {
  auto* values = static_cast<Value*>(to);
  const auto* from_values = static_cast<const Value*>(from);
  timeline.each(count, [=] GANYMEDE_DEVICE(std::size_t i) { values[i] = from_values[i]; });
}

/// Copies an even number of bytes.
template <class Device>
void copy(Timeline<Device>& timeline, void* to, const void* from, std::size_t bytes) {
  const auto units = reinterpret_cast<std::uintptr_t>(to) | reinterpret_cast<std::uintptr_t>(from) | bytes;
  if (units % sizeof(SixteenBytes) == 0)
    return copy_values<SixteenBytes>(timeline, to, from, bytes / sizeof(SixteenBytes));
  if (units % sizeof(float) == 0) return copy_values<float>(timeline, to, from, bytes / sizeof(float));
  copy_values<std::uint16_t>(timeline, to, from, bytes / sizeof(std::uint16_t));
}

/// Writes the host's numbers to a tensor. Must not be called while a step is captured.
template <class E, class Device>
void write_elements(Timeline<Device>& timeline, Tensor to, std::span<const float> host) {
  assert(timeline.is_eager() && host.size() == to.size());
  if (host.empty()) return;
  if constexpr (std::is_same_v<E, float>) return timeline.device().to_device(to.data, host.data(), host.size_bytes());
  std::vector<E> stored(host.size());
  std::copy(host.begin(), host.end(), stored.begin());
  timeline.device().to_device(to.data, stored.data(), stored.size() * sizeof(E));
}

template <class E, class Device>
void read_elements(Timeline<Device>& timeline, std::span<float> host, Tensor from) {
  if (host.empty()) return;
  if constexpr (std::is_same_v<E, float>) return timeline.device().to_host(host.data(), from.data, host.size_bytes());
  std::vector<E> stored(host.size());
  timeline.device().to_host(stored.data(), from.data, stored.size() * sizeof(E));
  std::copy(stored.begin(), stored.end(), host.begin());
}

template <class E, class Device>
void pack(Timeline<Device>& timeline, Compression compression, std::uint8_t* to, const E* from, std::size_t count) {
  if (compression == Compression::none) return copy(timeline, to, from, count * sizeof(E));
  if (compression == Compression::int8) {
    timeline.each((count + kInt8Block - 1) / kInt8Block,
                  [=] GANYMEDE_DEVICE(std::size_t block) { pack_bytes(to, from, count, block); });
    return;
  }
  auto* halves = reinterpret_cast<std::uint16_t*>(to);
  const bool ieee = compression == Compression::fp16;
  timeline.each(count, [=] GANYMEDE_DEVICE(std::size_t i) { halves[i] = ieee ? to_fp16(from[i]) : to_bf16(from[i]); });
}

template <class E, class Device>
void unpack(Timeline<Device>& timeline, Compression compression, E* to, const std::uint8_t* from, std::size_t count) {
  if (compression == Compression::none) return copy(timeline, to, from, count * sizeof(E));
  if (compression == Compression::int8)
    return timeline.each(count, [=] GANYMEDE_DEVICE(std::size_t i) { to[i] = unpack_byte(from, i); });
  const auto* halves = reinterpret_cast<const std::uint16_t*>(from);
  const bool ieee = compression == Compression::fp16;
  timeline.each(count,
                [=] GANYMEDE_DEVICE(std::size_t i) { to[i] = ieee ? from_fp16(halves[i]) : from_bf16(halves[i]); });
}

}  // namespace ganymede::kernel::cuda
