#pragma once
// Lossy compression of floats: of gradients that are sent, and of activations that are kept for the backward pass.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "kernel/tensor.hpp"

namespace ganymede::kernel {

enum class Compression {
  none,
  fp16,  ///< IEEE half precision; larger numbers become its largest, 65504
  bf16,  ///< the upper half of a float, rounded to nearest even
  int8,  ///< 8 bits, and one scale for each 256 numbers. For gradients the rounding error is added to the next step's
         ///< (Seide et al. 2014).
};
inline constexpr std::string_view kCompressionNames[] = {"none", "fp16", "bf16", "int8"};

/// Size of `count` compressed numbers; `stored`: their type, which Compression::none keeps.
std::size_t compressed_bytes(Compression compression, std::size_t count, ElementType stored = ElementType::fp32);
/// Compresses into compressed_bytes(compression, from.size()) bytes at `to`.
void compress(Compression compression, std::span<const float> from, std::uint8_t* to);
/// The reverse; reads compressed_bytes(compression, to.size()) bytes.
void decompress(Compression compression, const std::uint8_t* from, std::span<float> to);

}  // namespace ganymede::kernel
