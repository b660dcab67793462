#pragma once
// Images of bytes in host memory, as every reader gives them.

#include <cstdint>
#include <vector>

#include "kernel/gan.hpp"

namespace ganymede::kernel {

struct Images {
  int count = 0, height = 0, width = 0;
  std::vector<std::uint8_t> pixels = {};  ///< [count x channels x frames x height x width]
  int channels = 1;                       ///< 1 or 3: grey, or red, green and blue
  int frames = 1;                         ///< of a clip

  ImageShape shape() const { return {height, width, channels, frames}; }
};

/// Images whose every pixel is the mean of those that it covers. `shape` divides that of the images; channels stay.
Images shrink(const Images& images, ImageShape shape);

}  // namespace ganymede::kernel
