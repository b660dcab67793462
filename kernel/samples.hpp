#pragma once
// Draws images from a generator.

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "kernel/gan.hpp"

namespace ganymede::kernel {

/// Generates `count` images in inference mode: [count x channels x frames x height x width] of gan.image, with values
/// near [0, 1]. The same seed gives the same latents. If the GAN keeps an average of the generator's parameters, the
/// average is used.
std::vector<float> sample_images(Gan& gan, TensorOps& ops, std::uint64_t seed, int count);
/// The same, with latents that `fill` puts into gan.latent before each batch.
std::vector<float> sample_images(Gan& gan, TensorOps& ops, const std::function<void()>& fill, int count);

/// Enlarges images of shape `from` to `to`, whose extents must be multiples: every pixel becomes a block of equal
/// pixels.
std::vector<float> enlarge(const std::vector<float>& images, ImageShape from, ImageShape to);

// PNG pictures of generated images.

/// The bytes of a PNG with `rows` x `columns` cells, filled row by row with at most as many images: [images x pixels]
/// values in [0, 1], channels interleaved. `gap` dark pixels separate cells. One channel is grey, three are RGB.
std::string png_grid(std::span<const float> images, ImageShape shape, int rows, int columns, int gap = 1);

/// A PNG of `count` images from sample_images(), enlarged to gan.whole. Frames of a clip stand side by side.
std::string sample_grid(Gan& gan, TensorOps& ops, std::uint64_t seed, int count);

/// The same of `count` images that were sampled, without gaps.
std::string png_of(const Gan& gan, const std::vector<float>& samples, int count, int gap = 0);

}  // namespace ganymede::kernel
