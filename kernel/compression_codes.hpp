#pragma once
// How a float becomes fewer bits and back, for host and device.

#include "kernel/ops/cuda/portable.hpp"

namespace ganymede::kernel {

/// Numbers that share a scale in 8 bits: 4 bytes of scale, then a byte a number.
inline constexpr std::size_t kScaledTogether = 256;

GANYMEDE_DEVICE inline std::uint16_t to_bf16(float value) {
  const std::uint32_t bits = cuda::bits_of(value);
  if (value != value) return 0x7fc0;
  return static_cast<std::uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

GANYMEDE_DEVICE inline float from_bf16(std::uint16_t half) { return cuda::float_of(std::uint32_t{half} << 16); }

GANYMEDE_DEVICE inline std::uint16_t to_fp16(float value) {
  const auto sign = static_cast<std::uint16_t>((cuda::bits_of(value) >> 16) & 0x8000);
  if (value != value) return static_cast<std::uint16_t>(sign | 0x7e00);
  const float magnitude = fminf(fabsf(value), 65504.0F);
  if (magnitude < 6.103515625e-05F)  // subnormal, below 2^-14: multiples of 2^-24
    return static_cast<std::uint16_t>(sign | static_cast<std::uint16_t>(rintf(magnitude * 16777216.0F)));
  const std::uint32_t rest = cuda::bits_of(magnitude) - (std::uint32_t{112} << 23);
  return static_cast<std::uint16_t>(sign | ((rest + 0xfff + ((rest >> 13) & 1)) >> 13));
}

GANYMEDE_DEVICE inline float from_fp16(std::uint16_t half) {
  const std::uint32_t sign = std::uint32_t{half & 0x8000U} << 16, rest = half & 0x7fffU;
  if (rest >= 0x7c00) return cuda::float_of(sign | 0x7fc00000U);
  if (rest < 0x400) return cuda::float_of(sign | cuda::bits_of(static_cast<float>(rest) * (1.0F / 16777216.0F)));
  return cuda::float_of(sign | ((rest << 13) + (std::uint32_t{112} << 23)));
}

/// The `block`-th of the blocks of `count` numbers.
GANYMEDE_DEVICE inline void pack_bytes(std::uint8_t* to, const float* from, std::size_t count, std::size_t block) {
  const std::size_t first = block * kScaledTogether, left = count - first;
  const std::size_t many = left < kScaledTogether ? left : kScaledTogether;
  float most = 0;
  bool finite = true;
  for (std::size_t i = 0; i < many; ++i) {
    const float magnitude = fabsf(from[first + i]);
    most = fmaxf(most, magnitude);
    finite = finite && magnitude <= 3.4028235e38F;
  }
  // What is not a number stays so: the losses will tell.
  const float scale = finite ? most / 127 : cuda::float_of(0x7fc00000U);
  const float inverse = most > 0 && finite ? 127 / most : 0;
  to += block * (kScaledTogether + sizeof scale);
  memcpy(to, &scale, sizeof scale);
  for (std::size_t i = 0; i < many; ++i)
    to[sizeof scale + i] =
        static_cast<std::uint8_t>(finite ? static_cast<std::int8_t>(rintf(from[first + i] * inverse)) : 1);
}

/// The i-th number.
GANYMEDE_DEVICE inline float unpack_byte(const std::uint8_t* from, std::size_t i) {
  float scale;
  from += i / kScaledTogether * (kScaledTogether + sizeof scale);
  memcpy(&scale, from, sizeof scale);
  return scale * static_cast<float>(static_cast<std::int8_t>(from[sizeof scale + i % kScaledTogether]));
}

}  // namespace ganymede::kernel
