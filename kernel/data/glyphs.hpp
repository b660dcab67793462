#pragma once
// The built-in data set: digit-like glyphs drawn by code, so that nothing must be downloaded. Only IEEE arithmetic and
// integer random numbers: the same seed gives the same bytes on every machine.

#include <cstdint>
#include <vector>

#include "kernel/data/images.hpp"
#include "kernel/gan.hpp"

namespace ganymede::kernel {

struct Glyphs {
  Images images;                     ///< white strokes on black as in MNIST; in colour, of two colours that shade
  std::vector<std::uint8_t> labels;  ///< 0 to 9, every class equally often (within one)
};

/// Square images of 28 pixels or more, of one or three channels.
Glyphs draw_glyphs(int count, std::uint64_t seed, ImageShape shape = {28, 28, 1});

}  // namespace ganymede::kernel
