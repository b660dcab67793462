#pragma once
// Images of bytes in host memory, as every reader gives them.

#include <cstdint>
#include <vector>

namespace ganymede::kernel {

struct Images {
  int count = 0, height = 0, width = 0;
  std::vector<std::uint8_t> pixels = {};  ///< [count x channels x height x width]
  int channels = 1;                       ///< 1 or 3: grey, or red, green and blue
};

}  // namespace ganymede::kernel
