#pragma once
// Floats in fewer bits: gradients on their way, activations until the backward pass.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace ganymede::kernel {

enum class Compression {
  none,
  fp16,  ///< IEEE half precision; what is too large for it becomes its largest number
  bf16,  ///< the upper half of a float, rounded to nearest even
  int8,  ///< 8 bits and a scale for each 256 numbers; of gradients what is lost is added to the next step's (Seide et
         ///< al. 2014)
};
inline constexpr std::string_view kCompressionNames[] = {"none", "fp16", "bf16", "int8"};

std::size_t compressed_bytes(Compression compression, std::size_t count);
/// `to` holds compressed_bytes.
void compress(Compression compression, std::span<const float> from, std::uint8_t* to);
void decompress(Compression compression, const std::uint8_t* from, std::span<float> to);

}  // namespace ganymede::kernel
