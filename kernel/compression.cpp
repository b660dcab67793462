#include "kernel/compression.hpp"

#include <cstring>

#include "kernel/compression_codes.hpp"

namespace ganymede::kernel {
namespace {

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

void encode_bytes(std::span<const float> from, std::uint8_t* to) {
  for (std::size_t block = 0; block * kInt8Block < from.size(); ++block)
    pack_bytes(to, from.data(), from.size(), block);
}

void decode_bytes(const std::uint8_t* from, std::span<float> to) {
  for (std::size_t i = 0; i < to.size(); ++i) to[i] = unpack_byte(from, i);
}

}  // namespace

std::size_t compressed_bytes(Compression compression, std::size_t count, ElementType stored) {
  switch (compression) {
    case Compression::fp16:
    case Compression::bf16:
      return 2 * count;
    case Compression::int8:
      return count + (count + kInt8Block - 1) / kInt8Block * sizeof(float);
    case Compression::none:
      break;
  }
  return count * bytes_of(stored);
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
