#pragma once
// Draws images from a generator.

#include <cstdint>
#include <functional>
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

}  // namespace ganymede::kernel
