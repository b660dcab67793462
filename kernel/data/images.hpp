#pragma once
// Images in host memory with a byte for each value: what every reader of data returns.

#include <cstdint>
#include <vector>

#include "kernel/gan.hpp"

namespace ganymede::kernel {

struct Images {
  int count = 0, height = 0, width = 0;
  std::vector<std::uint8_t> pixels = {};  ///< [count x channels x frames x height x width]
  int channels = 1;                       ///< 1: grey; 3: red, green and blue
  int frames = 1;                         ///< frames of a clip; 1 for still images

  ImageShape shape() const { return {height, width, channels, frames}; }
};

/// Shrinks images to `shape`, whose extents must divide theirs; the channels must be the same. Every pixel becomes the
/// mean of the block that it covers, rounded to the nearest integer.
Images shrink(const Images& images, ImageShape shape);

}  // namespace ganymede::kernel
