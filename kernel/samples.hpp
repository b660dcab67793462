#pragma once
// Draws images from a generator.

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kernel/gan.hpp"

namespace ganymede::kernel {

/// Generates `count` images in inference mode: [count x channels x frames x height x width] of gan.image, with values
/// near [0, 1]. The same seed gives the same latents. If the GAN keeps an average of the generator's parameters, the
/// average is used.
/// `only`: the class of all images of a model with classes; without one image i has class (seed + i) modulo the
/// classes.
std::vector<float> sample_images(Gan& gan, TensorOps& ops, std::uint64_t seed, int count, std::optional<int> only = {});
/// The same, where `fill(first)` puts latents, and classes, into the gan before the batch that begins with image
/// `first`.
std::vector<float> sample_images(Gan& gan, TensorOps& ops, const std::function<void(int)>& fill, int count);
/// The class of an image of which only the seed is given.
inline int class_of_seed(const Gan& gan, std::uint64_t seed) {
  return gan.classes == 0 ? 0 : static_cast<int>(seed % static_cast<std::uint64_t>(gan.classes));
}

/// Reads an image of a domain: 0 or 1, and the image's index (see Dataset::read).
using ReadDomain = std::function<void(int domain, int index, std::uint8_t* out)>;
/// A model's outputs for the first `count` images, as the rows of a PNG. A cyclic one: an image of domain A, as one of
/// B, and back in A; then the same of domain B. One that restores reduced images: the reduced one, what becomes of it,
/// and the image.
std::string translation_grid(Gan& gan, TensorOps& ops, const ReadDomain& read, int count);

/// Enlarges images of shape `from` to `to`, whose extents must be multiples: every pixel becomes a block of equal
/// pixels.
std::vector<float> enlarge(const std::vector<float>& images, ImageShape from, ImageShape to);

// PNG pictures of generated images.

/// The bytes of a PNG with `rows` x `columns` cells, filled row by row with at most as many images: [images x pixels]
/// values in [0, 1], channels interleaved. `gap` dark pixels separate cells. One channel is grey, three are RGB.
std::string png_grid(std::span<const float> images, ImageShape shape, int rows, int columns, int gap = 1);

/// A PNG of `count` images from sample_images(), enlarged to gan.whole. Frames of a clip stand side by side.
std::string sample_grid(Gan& gan, TensorOps& ops, std::uint64_t seed, int count, std::optional<int> only = {});

/// The same of `count` images that were sampled, without gaps.
std::string png_of(const Gan& gan, const std::vector<float>& samples, int count, int gap = 0);

}  // namespace ganymede::kernel
