#pragma once
// Images from a generator.

#include <cstdint>
#include <vector>

#include "kernel/gan.hpp"

namespace ganymede::kernel {

/// `count` images in inference mode, [count x channels x frames x height x width] of gan.image with values around
/// [0, 1], always of the same latents under the same seed; by the average of the generator's parameters where there is
/// one.
std::vector<float> sample_images(Gan& gan, TensorOps& ops, std::uint64_t seed, int count);

/// Images of `from` as those of `to`, whose extents are multiples: every pixel becomes a block.
std::vector<float> enlarge(const std::vector<float>& images, ImageShape from, ImageShape to);

}  // namespace ganymede::kernel
