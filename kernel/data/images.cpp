#include "kernel/data/images.hpp"

#include <algorithm>
#include <cassert>

namespace ganymede::kernel {

Images shrink(const Images& images, ImageShape shape) {
  assert(images.channels == shape.channels && images.frames % shape.frames == 0 && images.height % shape.height == 0 &&
         images.width % shape.width == 0);
  const int frames = images.frames / shape.frames, rows = images.height / shape.height,
            columns = images.width / shape.width, area = frames * rows * columns;
  Images small{images.count, shape.height, shape.width, {}, shape.channels, shape.frames};
  small.pixels.resize(static_cast<std::size_t>(images.count) * static_cast<std::size_t>(shape.pixels()));
  std::vector<int> sums(static_cast<std::size_t>(shape.width));
  const std::uint8_t* from = images.pixels.data();
  std::uint8_t* to = small.pixels.data();
  const auto plane = std::ptrdiff_t{images.height} * images.width;
  for (std::ptrdiff_t clip = 0; clip < std::ptrdiff_t{images.count} * images.channels * shape.frames; ++clip)
    for (int y = 0; y < shape.height; ++y) {
      std::fill(sums.begin(), sums.end(), 0);
      for (int f = 0; f < frames; ++f)
        for (int r = 0; r < rows; ++r) {
          const std::uint8_t* row = from + (clip * frames + f) * plane + std::ptrdiff_t{y * rows + r} * images.width;
          for (int& sum : sums)
            for (int c = 0; c < columns; ++c) sum += *row++;
        }
      for (const int sum : sums) *to++ = static_cast<std::uint8_t>((sum + area / 2) / area);
    }
  return small;
}

}  // namespace ganymede::kernel
