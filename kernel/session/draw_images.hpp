#pragma once
// Draws images from a checkpoint's generator, as `ganymede generate` and `ganymede serve --generator` do.

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

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

/// Bounds of `ganymede serve --generator`, which the manifests that start it keep: images that are drawn at once, and
/// requests that wait, each of which holds a thread.
inline constexpr int kMostDrawnAtOnce = 256, kMostWaiting = 400;

/// A generator that stays in memory and draws single images, as `ganymede serve --generator` does.
class ImageMaker {
 public:
  /// Only the device's options of `train` are used. Throws ConfigError for a checkpoint of another version's model.
  /// Batches of 1, 2, 4, ... up to `largest_batch` images are prepared.
  ImageMaker(const Checkpoint& checkpoint, const TrainOptions& train, int largest_batch);

  /// A PNG for each seed: the image that sample_images() draws first of it, whatever else is in the batch. At most
  /// `largest_batch` seeds; not to be called by two threads at once.
  std::vector<std::string> draw(std::span<const std::uint64_t> seeds);

  const std::string& model() const { return gans_.begin()->second.model; }
  std::int64_t steps() const { return steps_; }  ///< steps of training that the checkpoint has seen
  const BackendInfo& backend() const { return backend_->info; }

 private:
  std::unique_ptr<Backend> backend_;
  std::map<int, Gan> gans_;  ///< by batch
  std::int64_t steps_ = 0;
};

}  // namespace ganymede::kernel
