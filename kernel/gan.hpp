#pragma once
// A generator, its discriminator, and the small tensors of their step.

#include <map>
#include <memory>
#include <string>

#include "kernel/network.hpp"

namespace ganymede::kernel {

/// Of one image, or of a clip of several frames: [channels x frames x height x width].
struct ImageShape {
  int height = 0, width = 0, channels = 1;
  int frames = 1;
  int pixels() const { return height * width * channels * frames; }
  /// Of so many features a pixel, the blocks that one pixel of the stage before becomes (see Growth).
  BlockShape halves(int features) const { return {features, frames, height, width, frames > 1 ? 2 : 1, 2}; }
  bool operator==(const ImageShape&) const = default;
};

struct Losses {
  double discriminator = 0;  ///< on real images plus on fake ones
  double generator = 0;
};

/// Random numbers of a step, one stream a consumer.
struct StepRandom {
  RandomStream latent;
  RandomStream dropout;
  explicit StepRandom(std::uint64_t seed) : latent(seed, "kernel/latent"), dropout(seed, "kernel/dropout") {}
};

/// Device scalars that a step leaves.
enum LossSlot { kLossReal, kLossFake, kLossPenalty, kLossGenerator, kLossSlots };

/// Where a growing model stands: stage 0 makes the smallest images, each later one images of twice the size; at first
/// the larger ones fade in.
struct Growth {
  int stage = 0;
  bool fading = false;
  bool operator==(const Growth&) const = default;
};

/// What a Gan holds beside its networks.
struct GanOptions {
  bool average = false;                ///< of the generator's parameters
  bool gradient_penalty = false;       ///< room for its images, and the discriminator's tangents
  ActivationStorage activations = {};  ///< of a discriminator with tangents: plain whatever is said
};

struct Gan {
  std::string model;
  ImageShape image;                                              ///< that the networks make and judge
  ImageShape whole = image;                                      ///< when they are grown up
  std::shared_ptr<float> share = std::make_shared<float>(1.0F);  ///< of the newest layers while they fade in
  bool fading = false;
  bool dense = false;  ///< its networks see all of an image's features as channels of one position
  float darkest = 0;   ///< what black is to the networks, 0 or -1; white is 1
  Network generator;
  Network discriminator;

  // Set by prepare().
  int batch = 0;
  Tensor real = {};                     ///< [pixels x batch], in [darkest, 1]
  Tensor latent = {};                   ///< [latent size x batch]
  Tensor d_logits = {};                 ///< [1 x batch]
  float* losses = nullptr;              ///< [kLossSlots]
  Tensor coarse = {}, blurred = {};     ///< while fading: real images of half the size, and enlarged again
  Tensor between = {}, direction = {};  ///< the gradient penalty's images, and which way they go
  Buffer small = {};
  Buffer shared = {};   ///< of both networks, in turns
  Buffer average = {};  ///< of the generator's parameters over its updates, if wanted

  /// Allocates for `batch` images a step and draws the initial weights from `seed`.
  void prepare(Ops& ops, int batch_size, std::uint64_t seed, GanOptions options = {});
  bool has_average() const { return average.bytes() > 0; }

  /// What prepare(batch_size) would hold on the device, by kind. Only before prepare().
  std::map<std::string, double> planned_memory_bytes(const Ops& ops, int batch_size, GanOptions options = {});

  /// As Ops orders its images.
  int channels() const { return dense ? image.pixels() : image.channels; }

  /// Gives back all but what take_over() takes.
  void release_activations();
  /// Weights, Adam's moments and the average of all that `from`, prepared, has too.
  void take_over(const Gan& from, Ops& ops);

  /// Matrix work of one whole step of so many discriminator updates per image of a batch: see gan_step. 2 FLOPs a
  /// multiply-add; nothing for the gradients of images and latents that nobody uses.
  double step_flops_per_image(int discriminator_updates = 1, bool gradient_penalty = false) const;
};

}  // namespace ganymede::kernel
