#pragma once
// The built-in data set: digit-like glyphs drawn by code, so that nothing must be downloaded. Only IEEE arithmetic and
// integer random numbers: the same seed gives the same bytes on every machine.

#include <cstdint>
#include <vector>

#include "kernel/data/idx.hpp"

namespace ganymede::kernel {

struct Glyphs {
  IdxImages images;                  ///< 28x28, white strokes on black as in MNIST
  std::vector<std::uint8_t> labels;  ///< 0 to 9, every class equally often (within one)
};

Glyphs draw_glyphs(int count, std::uint64_t seed);

}  // namespace ganymede::kernel
