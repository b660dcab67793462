#pragma once
// The built-in data set: digit-like glyphs drawn by code, so that nothing must be downloaded. The same seed gives the
// same bytes on every machine, because only IEEE arithmetic and integer random numbers are used.

#include <cstdint>
#include <vector>

#include "kernel/data/picture.hpp"
#include "kernel/gan.hpp"

namespace ganymede::kernel {

struct Glyphs {
  Images images;                     ///< white strokes on black as in MNIST; with three channels, shaded in two colours
  std::vector<std::uint8_t> labels;  ///< 0 to 9; counts of classes differ by at most one
};

/// Draws `count` images. `shape` must be square, with 28 pixels or more a side and one or three channels.
Glyphs draw_glyphs(int count, std::uint64_t seed, ImageShape shape = {28, 28, 1});

}  // namespace ganymede::kernel
