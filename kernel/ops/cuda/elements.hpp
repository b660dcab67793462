#pragma once
// Element-wise operations on a GPU: activations, optimizer, images, compression. Arguments as in TensorOps.

#include <algorithm>
#include <type_traits>
#include <vector>

#include "kernel/adam_rule.hpp"
#include "kernel/compression.hpp"
#include "kernel/compression_codes.hpp"
#include "kernel/ops/cuda/timeline.hpp"
#include "kernel/ops/cuda/vectors.hpp"

namespace ganymede::kernel::cuda {

template <class E, class Device>
void activate(Timeline<Device>& timeline, Tensor x, Activation activation) {
  each_element(
      timeline, x.size(), [=] GANYMEDE_DEVICE(std::size_t, E & v) { v = activated(v, activation); }, elements_of<E>(x));
}

template <class E, class Device>
void activate_backward(Timeline<Device>& timeline, Tensor dy, Tensor y, Activation activation) {
  const E* out = elements_of<E>(y);
  each_element(
      timeline, dy.size(), [=] GANYMEDE_DEVICE(std::size_t, E & g, E v) { g *= activation_slope(v, activation); },
      elements_of<E>(dy), out);
}

/// The derivative of leaky_dropout_forward.
template <class E>
struct LeakyDropoutSlope {
  const E* out;  ///< its results
  const std::uint8_t* kept;
  float inverse_keep, slope;

  GANYMEDE_DEVICE float of(float y, std::uint8_t keeps) const {
    return (static_cast<float>(keeps) * inverse_keep) * leaky_slope(y, slope);
  }
  /// At element i.
  GANYMEDE_DEVICE float operator()(std::size_t i) const { return of(out[i], kept[i]); }
};

template <class E, class Device>
void leaky_dropout_backward(Timeline<Device>& timeline, Tensor dy, Tensor y, Mask mask, LeakyDropoutParameters p,
                            float* d_bias, bool accumulate) {
  E* g = elements_of<E>(dy);
  const LeakyDropoutSlope<E> slope_of{elements_of<E>(y), mask.data, 1.0F / p.keep, p.slope};
  if (d_bias == nullptr)
    return each_element(
        timeline, dy.size(),
        [=] GANYMEDE_DEVICE(std::size_t, E & d, E v, std::uint8_t keeps) { d *= slope_of.of(v, keeps); }, g,
        slope_of.out, slope_of.kept);
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
    return each_element(
        timeline, dx.size(),
        [=] GANYMEDE_DEVICE(std::size_t i, E & to_x, E v, std::uint8_t keeps) {
          to_x = g[i / width] * weight[i % width] * slope_of.of(v, keeps);
        },
        Written<E>{out}, in, slope_of.kept);
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
  const Divisor width(size_of(channels));
  each_element(
      timeline, x.size(), [=] GANYMEDE_DEVICE(std::size_t i, E & v) { v = leaky(v * factor + bias[i % width], slope); },
      elements_of<E>(x));
}

template <class E, class Device>
void bias_leaky_backward(Timeline<Device>& timeline, Tensor dy, Tensor y, float* d_bias, int channels, float factor,
                         float slope, bool accumulate) {
  E* g = elements_of<E>(dy);
  const E* out = elements_of<E>(y);
  const std::size_t width = size_of(channels);
  if (d_bias == nullptr)
    return each_element(
        timeline, dy.size(), [=] GANYMEDE_DEVICE(std::size_t, E & d, E v) { d *= factor * leaky_slope(v, slope); }, g,
        out);
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
  const StepWord first = timeline.step_word(a), second = timeline.step_word(b);
  each_element(
      timeline, y.size(),
      [=] GANYMEDE_DEVICE(std::size_t, E & to, E v) {
        const float scaled = first.number() * v, old = second.number();
        to = old == 0 ? scaled : scaled + old * to;
      },
      elements_of<E>(y), from);
}

template <class E, class Device>
void fill(Timeline<Device>& timeline, Tensor x, float value) {
  each_element(
      timeline, x.size(), [=] GANYMEDE_DEVICE(std::size_t, E & v) { v = value; }, Written<E>{elements_of<E>(x)});
}

/// Brings copies of parameters up to date.
template <class Device>
void round_parameters(Timeline<Device>& timeline, Bf16* copy, const float* parameters, std::size_t count) {
  each_element(
      timeline, count, [=] GANYMEDE_DEVICE(std::size_t, Bf16 & rounded, float v) { rounded = v; }, Written<Bf16>{copy},
      parameters);
}

/// `copy`: of the parameters; null: there is none.
template <class Device>
void adam(Timeline<Device>& timeline, float* parameters, Bf16* copy, const float* gradients, float* first,
          float* second, std::size_t count, const AdamRule& by_value) {
  const AdamRule rule = by_value;
  const StepWord rate = timeline.step_word(rule.rate), root = timeline.step_word(rule.inverse_root);
  each_element(
      timeline, count,
      [=] GANYMEDE_DEVICE(std::size_t, float& parameter, Bf16& rounded, float g, float& m, float& v) {
        m = rule.beta1 * m + (1 - rule.beta1) * g;
        v = rule.beta2 * v + (1 - rule.beta2) * g * g;
        parameter -= rate.number() * m / (sqrtf(v) * root.number() + rule.epsilon);
        rounded = parameter;
      },
      parameters, Written<Bf16>{copy}, gradients, first, second);
}

template <class Device>
void average(Timeline<Device>& timeline, float* average, const float* values, std::size_t count, float decay) {
  const StepWord kept = timeline.step_word(decay);
  each_element(
      timeline, count,
      [=] GANYMEDE_DEVICE(std::size_t, float& mean, float value) { mean += (1 - kept.number()) * (value - mean); },
      average, values);
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
  each_element(
      timeline, x.size(),
      [=] GANYMEDE_DEVICE(std::size_t i, E & v) {
        const std::size_t image = i / width, position = i % width / depth, channel = i % depth;
        const std::uint8_t* from = base + slot.word() * stride;
        const std::size_t pixel = image * width + channel * positions + position;
        v = static_cast<float>(from[pixel]) * factor + low;
      },
      Written<E>{elements_of<E>(x)});
}

template <class Value, class Device>
void copy_values(Timeline<Device>& timeline, void* to, const void* from, std::size_t count) {
  each_element(
      timeline, count, [=] GANYMEDE_DEVICE(std::size_t, Value & copy, Value value) { copy = value; },
      Written<Value>{static_cast<Value*>(to)}, static_cast<const Value*>(from));
}

/// Copies an even number of bytes.
template <class Device>
void copy(Timeline<Device>& timeline, void* to, const void* from, std::size_t bytes) {
  const auto units = reinterpret_cast<std::uintptr_t>(to) | reinterpret_cast<std::uintptr_t>(from) | bytes;
  if (units % sizeof(std::uint32_t) == 0)
    return copy_values<std::uint32_t>(timeline, to, from, bytes / sizeof(std::uint32_t));
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
  each_element(
      timeline, count,
      [=] GANYMEDE_DEVICE(std::size_t, std::uint16_t & code, E v) { code = ieee ? to_fp16(v) : to_bf16(v); },
      Written<std::uint16_t>{halves}, from);
}

template <class E, class Device>
void unpack(Timeline<Device>& timeline, Compression compression, E* to, const std::uint8_t* from, std::size_t count) {
  if (compression == Compression::none) return copy(timeline, to, from, count * sizeof(E));
  if (compression == Compression::int8)
    return each_element(
        timeline, count, [=] GANYMEDE_DEVICE(std::size_t i, E & v) { v = unpack_byte(from, i); }, Written<E>{to});
  const auto* halves = reinterpret_cast<const std::uint16_t*>(from);
  const bool ieee = compression == Compression::fp16;
  each_element(
      timeline, count,
      [=] GANYMEDE_DEVICE(std::size_t, E & v, std::uint16_t code) { v = ieee ? from_fp16(code) : from_bf16(code); },
      Written<E>{to}, halves);
}

}  // namespace ganymede::kernel::cuda
