#include "kernel/compression.hpp"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>
#include <cstring>

namespace ganymede::kernel {
namespace {

constexpr std::size_t kBlock = 256;

std::uint16_t to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if (std::isnan(value)) return 0x7fc0;
  return static_cast<std::uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

float from_bf16(std::uint16_t half) { return std::bit_cast<float>(std::uint32_t{half} << 16); }

std::uint16_t to_fp16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000);
  if (std::isnan(value)) return static_cast<std::uint16_t>(sign | 0x7e00);
  const float magnitude = std::min(std::abs(value), 65504.0F);
  if (magnitude < 0x1p-14F)  // subnormal: multiples of 2^-24
    return static_cast<std::uint16_t>(sign | static_cast<std::uint16_t>(std::nearbyint(magnitude * 0x1p24F)));
  const auto rest = std::bit_cast<std::uint32_t>(magnitude) - (std::uint32_t{112} << 23);
  return static_cast<std::uint16_t>(sign | ((rest + 0xfff + ((rest >> 13) & 1)) >> 13));
}

float from_fp16(std::uint16_t half) {
  const std::uint32_t sign = std::uint32_t{half & 0x8000U} << 16, rest = half & 0x7fffU;
  if (rest >= 0x7c00) return std::bit_cast<float>(sign | 0x7fc00000U);
  if (rest < 0x400)
    return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(static_cast<float>(rest) * 0x1p-24F));
  return std::bit_cast<float>(sign | ((rest << 13) + (std::uint32_t{112} << 23)));
}

template <class Encode>
void encode_halves(std::span<const float> from, std::uint8_t* to, const Encode& encode) {
  for (std::size_t i = 0; i < from.size(); ++i) {
    const std::uint16_t half = encode(from[i]);
    std::memcpy(to + 2 * i, &half, sizeof half);
  }
}

template <class Decode>
void decode_halves(const std::uint8_t* from, std::span<float> to, const Decode& decode) {
  for (std::size_t i = 0; i < to.size(); ++i) {
    std::uint16_t half = 0;
    std::memcpy(&half, from + 2 * i, sizeof half);
    to[i] = decode(half);
  }
}

/// Each block: its scale, then a byte a number.
void encode_bytes(std::span<const float> from, std::uint8_t* to) {
  for (std::size_t first = 0; first < from.size(); first += kBlock) {
    const auto block = from.subspan(first, std::min(kBlock, from.size() - first));
    float most = 0;
    bool finite = true;
    for (const float value : block) {
      most = std::max(most, std::abs(value));
      finite = finite && std::isfinite(value);
    }
    // What is not a number stays so: the losses will tell.
    const float scale = finite ? most / 127 : std::nanf(""), inverse = most > 0 && finite ? 127 / most : 0;
    std::memcpy(to, &scale, sizeof scale);
    to += sizeof scale;
    for (const float value : block)
      *to++ = static_cast<std::uint8_t>(finite ? static_cast<std::int8_t>(std::nearbyint(value * inverse)) : 1);
  }
}

void decode_bytes(const std::uint8_t* from, std::span<float> to) {
  for (std::size_t first = 0; first < to.size(); first += kBlock) {
    float scale = 0;
    std::memcpy(&scale, from, sizeof scale);
    from += sizeof scale;
    for (float& value : to.subspan(first, std::min(kBlock, to.size() - first)))
      value = scale * static_cast<float>(static_cast<std::int8_t>(*from++));
  }
}

}  // namespace

std::size_t compressed_bytes(Compression compression, std::size_t count) {
  switch (compression) {
    case Compression::fp16:
    case Compression::bf16:
      return 2 * count;
    case Compression::int8:
      return count + (count + kBlock - 1) / kBlock * sizeof(float);
    case Compression::none:
      break;
  }
  return count * sizeof(float);
}

void compress(Compression compression, std::span<const float> from, std::uint8_t* to) {
  switch (compression) {
    case Compression::fp16:
      return encode_halves(from, to, to_fp16);
    case Compression::bf16:
      return encode_halves(from, to, to_bf16);
    case Compression::int8:
      return encode_bytes(from, to);
    case Compression::none:
      std::memcpy(to, from.data(), from.size_bytes());
  }
}

void decompress(Compression compression, const std::uint8_t* from, std::span<float> to) {
  switch (compression) {
    case Compression::fp16:
      return decode_halves(from, to, from_fp16);
    case Compression::bf16:
      return decode_halves(from, to, from_bf16);
    case Compression::int8:
      return decode_bytes(from, to);
    case Compression::none:
      std::memcpy(to.data(), from, to.size_bytes());
  }
}

}  // namespace ganymede::kernel
