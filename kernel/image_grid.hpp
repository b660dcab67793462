#pragma once
// PNG pictures of generated images.

#include <cstdint>
#include <span>
#include <string>

#include "kernel/gan.hpp"

namespace ganymede::kernel {

/// The bytes of a PNG with `rows` x `columns` cells, filled row by row with at most as many images: [images x pixels]
/// values in [0, 1], channels interleaved. `gap` dark pixels separate cells. One channel is grey, three are RGB.
std::string png_grid(std::span<const float> images, ImageShape shape, int rows, int columns, int gap = 1);

/// A PNG of `count` images from sample_images(), enlarged to gan.whole. Frames of a clip stand side by side.
std::string sample_grid(Gan& gan, TensorOps& ops, std::uint64_t seed, int count);

/// The same of `count` images that were sampled, without gaps.
std::string png_of(const Gan& gan, const std::vector<float>& samples, int count, int gap = 0);

}  // namespace ganymede::kernel
