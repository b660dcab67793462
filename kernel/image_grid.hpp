#pragma once
// Pictures of generated images.

#include <cstdint>
#include <span>
#include <string>

#include "kernel/gan.hpp"

namespace ganymede::kernel {

/// A PNG's bytes: `rows` x `columns` cells for as many images or fewer, [images x pixels] values in [0, 1], one dark
/// pixel between cells. Grey for one channel, RGB (interleaved) for three.
std::string png_grid(std::span<const float> images, ImageShape shape, int rows, int columns);

/// `count` of sample_images in a grid, enlarged to gan.whole; of clips the frames side by side.
std::string sample_grid(Gan& gan, TensorOps& ops, std::uint64_t seed, int count);

}  // namespace ganymede::kernel
