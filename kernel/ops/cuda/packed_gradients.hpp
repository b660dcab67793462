#pragma once
// Gradients that replicas send compressed. All add up the same bits in the same order, as BucketReducer does on the
// host, so that all have the same mean.

#include "kernel/ops/cuda/packing.hpp"
#include "kernel/ops/gradient_reducer.hpp"

namespace ganymede::kernel::cuda {

/// The i-th number of a compressed array.
GANYMEDE_DEVICE inline float packed_number(Compression compression, const std::uint8_t* from, std::size_t i) {
  if (compression == Compression::int8) return unpack_byte(from, i);
  const std::uint16_t half = reinterpret_cast<const std::uint16_t*>(from)[i];
  return compression == Compression::fp16 ? from_fp16(half) : from_bf16(half);
}

/// Compresses the gradients and starts to exchange them.
template <class Device>
void send_packed(Timeline<Device>& timeline, float* gradients, std::size_t count, const PackedGradients& packed) {
  const Compression compression = packed.compression;
  float* residual = packed.residual;
  const float *left = residual, *sent = gradients;
  const std::uint8_t* mine = packed.mine;
  if (residual != nullptr)
    each_element(
        timeline, count, [=] GANYMEDE_DEVICE(std::size_t, float& g, float r) { g += r; }, gradients, left);
  pack_numbers(timeline, compression, packed.mine, gradients, count);
  if (residual != nullptr)
    each_element(
        timeline, count,
        [=] GANYMEDE_DEVICE(std::size_t i, float& r, float g) { r = g - packed_number(compression, mine, i); },
        Written<float>{residual}, sent);
  timeline.gather(packed.mine, packed.all, packed.bytes);
}

/// Replaces the gradients by the mean of those that the replicas have sent.
template <class Device>
void average_packed(Timeline<Device>& timeline, float* gradients, std::size_t count, const PackedGradients& packed,
                    int replicas) {
  const Compression compression = packed.compression;
  const std::uint8_t* all = packed.all;
  const std::size_t bytes = packed.bytes, many = size_of(replicas);
  const float share = 1.0F / static_cast<float>(replicas);
  timeline.each(count, [=] GANYMEDE_DEVICE(std::size_t i) {
    float mean = 0;
    for (std::size_t r = 0; r < many; ++r) mean += share * packed_number(compression, all + r * bytes, i);
    gradients[i] = mean;
  });
}

}  // namespace ganymede::kernel::cuda
