#pragma once
// A generator, its discriminator, and the small tensors of their step.

#include <map>
#include <string>

#include "kernel/network.hpp"

namespace ganymede::kernel {

struct ImageShape {
  int height = 0, width = 0, channels = 1;
  int pixels() const { return height * width * channels; }
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
enum LossSlot { kLossReal, kLossFake, kLossGenerator, kLossSlots };

struct Gan {
  std::string model;
  ImageShape image;
  float darkest = 0;  ///< what black is to the networks, 0 or -1; white is 1
  Network generator;
  Network discriminator;

  // Set by prepare().
  int batch = 0;
  Tensor real;              ///< [pixels x batch], in [darkest, 1]
  Tensor latent;            ///< [latent size x batch]
  Tensor d_logits;          ///< [1 x batch]
  float* losses = nullptr;  ///< [kLossSlots]
  Buffer small;
  Buffer average = {};  ///< of the generator's parameters over its updates, if wanted

  /// Allocates for `batch` images a step and draws the initial weights from `seed`.
  void prepare(Ops& ops, int batch_size, std::uint64_t seed, bool with_average = false);
  bool has_average() const { return average.bytes() > 0; }

  /// What prepare(batch_size) would hold on the device, by kind. Only before prepare().
  std::map<std::string, double> planned_memory_bytes(const Ops& ops, int batch_size, bool with_average = false);

  /// Matrix work of one whole step of so many discriminator updates per image of a batch: see gan_step. 2 FLOPs a
  /// multiply-add; nothing for the gradients of images and latents that nobody uses.
  double step_flops_per_image(int discriminator_updates = 1) const;
};

}  // namespace ganymede::kernel
