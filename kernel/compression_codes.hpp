#pragma once
// Conversion of floats to 16 and 8 bits and back, for host and device. See Compression for the formats.

#include "kernel/bf16.hpp"

namespace ganymede::kernel {

/// Numbers that share one scale in the int8 format. A block is 4 bytes of scale, then one byte for each number.
inline constexpr std::size_t kInt8Block = 256;

/// Rounds to the nearest fp16 number, and ties to even. Magnitudes above 65504 become 65504; NaN stays NaN.
GANYMEDE_DEVICE inline std::uint16_t to_fp16(float value) {
  const auto sign = static_cast<std::uint16_t>((bits_of(value) >> 16) & 0x8000);
  if (value != value) return static_cast<std::uint16_t>(sign | 0x7e00);
  const float magnitude = fminf(fabsf(value), 65504.0F);
  if (magnitude < 6.103515625e-05F)  // subnormal, below 2^-14: multiples of 2^-24
    return static_cast<std::uint16_t>(sign | static_cast<std::uint16_t>(rintf(magnitude * 16777216.0F)));
  const std::uint32_t rest = bits_of(magnitude) - (std::uint32_t{112} << 23);
  return static_cast<std::uint16_t>(sign | ((rest + 0xfff + ((rest >> 13) & 1)) >> 13));
}

GANYMEDE_DEVICE inline float from_fp16(std::uint16_t half) {
  const std::uint32_t sign = std::uint32_t{half & 0x8000U} << 16, rest = half & 0x7fffU;
  if (rest >= 0x7c00) return float_of(sign | 0x7fc00000U);
  if (rest < 0x400) return float_of(sign | bits_of(static_cast<float>(rest) * (1.0F / 16777216.0F)));
  return float_of(sign | ((rest << 13) + (std::uint32_t{112} << 23)));
}

/// Writes block number `block` of the compressed form of `count` numbers; E is float or Bf16.
template <class E>
GANYMEDE_DEVICE void pack_bytes(std::uint8_t* to, const E* from, std::size_t count, std::size_t block) {
  const std::size_t first = block * kInt8Block, left = count - first;
  const std::size_t many = left < kInt8Block ? left : kInt8Block;
  float largest = 0;
  bool finite = true;
  for (std::size_t i = 0; i < many; ++i) {
    const float magnitude = fabsf(from[first + i]);
    largest = fmaxf(largest, magnitude);
    finite = finite && magnitude <= 3.4028235e38F;
  }
  // A block with a NaN or an infinity decodes to NaN, so that the losses show it.
  const float scale = finite ? largest / 127 : float_of(0x7fc00000U);
  const float inverse = largest > 0 && finite ? 127 / largest : 0;
  to += block * (kInt8Block + sizeof scale);
  memcpy(to, &scale, sizeof scale);
  for (std::size_t i = 0; i < many; ++i)
    to[sizeof scale + i] =
        static_cast<std::uint8_t>(finite ? static_cast<std::int8_t>(rintf(from[first + i] * inverse)) : 1);
}

/// The i-th number of an int8-compressed array.
GANYMEDE_DEVICE inline float unpack_byte(const std::uint8_t* from, std::size_t i) {
  float scale;
  from += i / kInt8Block * (kInt8Block + sizeof scale);
  memcpy(&scale, from, sizeof scale);
  return scale * static_cast<float>(static_cast<std::int8_t>(from[sizeof scale + i % kInt8Block]));
}

}  // namespace ganymede::kernel
