#pragma once
// Element-wise operations on a GPU: optimizer, images, copies.

#include <algorithm>
#include <type_traits>
#include <vector>

#include "kernel/adam_rule.hpp"
#include "kernel/ops/cuda/cuda_ops.hpp"
#include "kernel/ops/cuda/packing.hpp"
#include "kernel/ops/cuda/vectors.hpp"

namespace ganymede::kernel::cuda {

template <class Device, class E>
void CudaOps<Device, E>::do_combine(Tensor y, float a, Tensor x, float b) {
  const E* from = elements_of<E>(x);
  const StepWord first = t_.step_word(a), second = t_.step_word(b);
  each_element(
      t_, y.size(),
      [=] GANYMEDE_DEVICE(std::size_t, E & to, E v) {
        const float scaled = first.number() * v, old = second.number();
        to = old == 0 ? scaled : scaled + old * to;
      },
      elements_of<E>(y), from);
}

template <class Device, class E>
void CudaOps<Device, E>::do_fill(Tensor x, float value) {
  each_element(
      t_, x.size(), [=] GANYMEDE_DEVICE(std::size_t, E & v) { v = value; }, Written<E>{elements_of<E>(x)});
}

template <class Device, class E>
void CudaOps<Device, E>::update_copy(const float* parameters, std::size_t count) {
  auto* copy = static_cast<Bf16*>(copy_of(parameters));
  if (copy == nullptr) return;
  each_element(
      t_, count, [=] GANYMEDE_DEVICE(std::size_t, Bf16 & rounded, float v) { rounded = v; }, Written<Bf16>{copy},
      parameters);
}

template <class Device, class E>
void CudaOps<Device, E>::do_adam(float* parameters, const float* gradients, float* first, float* second,
                                 std::size_t count, const AdamRule& by_value) {
  auto* copy = static_cast<Bf16*>(copy_of(parameters));
  const AdamRule rule = by_value;
  const StepWord rate = t_.step_word(rule.rate), root = t_.step_word(rule.inverse_root);
  each_element(
      t_, count,
      [=] GANYMEDE_DEVICE(std::size_t, float& parameter, Bf16& rounded, float g, float& m, float& v) {
        m = rule.beta1 * m + (1 - rule.beta1) * g;
        v = rule.beta2 * v + (1 - rule.beta2) * g * g;
        parameter -= rate.number() * m / (sqrtf(v) * root.number() + rule.epsilon);
        rounded = parameter;
      },
      parameters, Written<Bf16>{copy}, gradients, first, second);
}

template <class Device, class E>
void CudaOps<Device, E>::do_average(float* average, const float* values, std::size_t count, float decay) {
  const StepWord kept = t_.step_word(decay);
  each_element(
      t_, count,
      [=] GANYMEDE_DEVICE(std::size_t, float& mean, float value) { mean += (1 - kept.number()) * (value - mean); },
      average, values);
  update_copy(average, count);
}

template <class Device, class E>
void CudaOps<Device, E>::do_load_images(Tensor x, std::span<const std::uint8_t> host_pixels, float low, int channels) {
  const StagedImages images = t_.staged(host_pixels);
  const std::uint8_t* base = images.base;
  const StepWord slot = t_.step_word(static_cast<std::uint32_t>(images.slot));
  const std::size_t stride = images.stride, positions = size_of(x.features / channels);
  const Divisor width(size_of(x.features)), depth(size_of(channels));
  const float factor = (1.0F - low) / 255.0F;
  each_element(
      t_, x.size(),
      [=] GANYMEDE_DEVICE(std::size_t i, E & v) {
        const std::size_t image = i / width, position = i % width / depth, channel = i % depth;
        const std::uint8_t* from = base + slot.word() * stride;
        const std::size_t pixel = image * width + channel * positions + position;
        v = static_cast<float>(from[pixel]) * factor + low;
      },
      Written<E>{elements_of<E>(x)});
}

/// Writes the host's numbers to a tensor. Must not be called while a step is captured.
template <class Device, class E>
void CudaOps<Device, E>::do_write_elements(Tensor to, std::span<const float> host) {
  assert(t_.is_eager() && host.size() == to.size());
  if (host.empty()) return;
  if constexpr (std::is_same_v<E, float>) return t_.device().to_device(to.data, host.data(), host.size_bytes());
  std::vector<E> stored(host.size());
  std::copy(host.begin(), host.end(), stored.begin());
  t_.device().to_device(to.data, stored.data(), stored.size() * sizeof(E));
}

template <class Device, class E>
void CudaOps<Device, E>::do_read_elements(std::span<float> host, Tensor from) {
  t_.finish_step();
  if (host.empty()) return;
  if constexpr (std::is_same_v<E, float>) return t_.device().to_host(host.data(), from.data, host.size_bytes());
  std::vector<E> stored(host.size());
  t_.device().to_host(stored.data(), from.data, stored.size() * sizeof(E));
  std::copy(stored.begin(), stored.end(), host.begin());
}

template <class Device, class E>
void CudaOps<Device, E>::do_copy(float* to, const float* from, std::size_t count) {
  copy_bytes(t_, to, from, count * sizeof(float));
  update_copy(to, count);
}

template <class Device, class E>
void CudaOps<Device, E>::do_copy_elements(Tensor to, Tensor from) {
  copy_bytes(t_, to.data, from.data, to.size() * sizeof(E));
}

template <class Device, class E>
void CudaOps<Device, E>::do_pack(Compression compression, std::uint8_t* to, const void* from, std::size_t count) {
  pack_numbers(t_, compression, to, static_cast<const E*>(from), count);
}

template <class Device, class E>
void CudaOps<Device, E>::do_unpack(Compression compression, void* to, const std::uint8_t* from, std::size_t count) {
  unpack_numbers(t_, compression, static_cast<E*>(to), from, count);
}

}  // namespace ganymede::kernel::cuda
