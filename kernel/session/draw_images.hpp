#pragma once
// Draws images from a checkpoint's generator, as `ganymede generate` does.

#include <cstdint>
#include <optional>
#include <string>

#include "kernel/checkpoint.hpp"
#include "kernel/train.hpp"

namespace ganymede::kernel {

struct DrawnImages {
  std::string model, png;  ///< the images in a grid
  BackendInfo backend;
  int batch = 0;            ///< images that were drawn at once
  double memory_bytes = 0;  ///< for such a batch
  double seconds = 0;       ///< of drawing and of packing the PNG
};

/// Draws `count` images with latents of `seed`, all of the class `only` if that is given. Of `train` only the device's
/// options are used. Throws ConfigError for a checkpoint of another version's model and for a class that the model does
/// not have, and Infeasible if memory does not suffice.
DrawnImages draw_images(const Checkpoint& checkpoint, const TrainOptions& train, int count, std::uint64_t seed,
                        std::optional<int> only = {});

}  // namespace ganymede::kernel
