#pragma once
// Operations on the blocks of a grid, on a GPU.

#include "kernel/ops/cuda/cuda_ops.hpp"

namespace ganymede::kernel::cuda {

/// Maps indices of a fine grid [batch x frames x height x width x channels] to those of the coarse grid of its blocks.
struct Grid {
  Divisor channels, frames, height, width, block_frames, block, small_frames, small_height, small_width;

  explicit Grid(const BlockShape& s)
      : channels(size_of(s.channels)),
        frames(size_of(s.frames)),
        height(size_of(s.height)),
        width(size_of(s.width)),
        block_frames(size_of(s.block_frames)),
        block(size_of(s.block)),
        small_frames(frames / block_frames),
        small_height(height / block),
        small_width(width / block) {}
  GANYMEDE_DEVICE std::size_t elements() const { return block_frames * block * block; }
  /// Index in the fine grid of element e of the block that belongs to `coarse`.
  GANYMEDE_DEVICE std::size_t fine(std::size_t coarse, std::size_t e) const {
    const std::size_t c = coarse % channels, x = coarse / channels % small_width;
    const std::size_t row = coarse / channels / small_width, y = row % small_height;
    const std::size_t plane = row / small_height, f = plane % small_frames, image = plane / small_frames;
    const std::size_t fine_f = f * block_frames + e / block / block, fine_y = y * block + e / block % block;
    return (((image * frames + fine_f) * height + fine_y) * width + x * block + e % block) * channels + c;
  }
  /// Index in the coarse grid of the block that holds `fine`.
  GANYMEDE_DEVICE std::size_t coarse(std::size_t fine) const {
    const std::size_t c = fine % channels, x = fine / channels % width, row = fine / channels / width;
    const std::size_t y = row % height, plane = row / height, f = plane % frames, image = plane / frames;
    const std::size_t small = (image * small_frames + f / block_frames) * small_height + y / block;
    return (small * small_width + x / block) * channels + c;
  }
};

template <class Device, class E>
void CudaOps<Device, E>::do_pool(Tensor coarse, Tensor fine, const BlockShape& s, float factor) {
  const E* from = elements_of<E>(fine);
  E* to = elements_of<E>(coarse);
  const Grid grid(s);
  t_.each(coarse.size(), [=] GANYMEDE_DEVICE(std::size_t i) {
    float sum = 0;
    for (std::size_t e = 0; e < grid.elements(); ++e) sum += from[grid.fine(i, e)];
    to[i] = factor * sum;
  });
}

template <class Device, class E>
void CudaOps<Device, E>::do_upsample(Tensor fine, Tensor coarse, const BlockShape& s, float factor) {
  const E* from = elements_of<E>(coarse);
  E* to = elements_of<E>(fine);
  const Grid grid(s);
  t_.each(fine.size(), [=] GANYMEDE_DEVICE(std::size_t i) { to[i] = factor * from[grid.coarse(i)]; });
}

}  // namespace ganymede::kernel::cuda
