#pragma once
// A generator, its discriminator, and the small tensors of their training step.

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>

#include "kernel/network.hpp"

namespace ganymede::kernel {

/// The shape of an image, or of a clip of several frames: [channels x frames x height x width].
struct ImageShape {
  int height = 0, width = 0, channels = 1;
  int frames = 1;
  /// Numbers in an image: all channels of all pixels of all frames.
  int pixels() const { return height * width * channels * frames; }
  /// The blocks into which one pixel of the stage before grows (see Growth), for `features` channels: 2 x 2 pixels, and
  /// 2 frames if there are several.
  BlockShape halves(int features) const { return {features, frames, height, width, frames > 1 ? 2 : 1, 2}; }
  bool operator==(const ImageShape&) const = default;
};

/// The kind of a model's step; step_clock.hpp lists the phases.
enum class StepKind {
  adversarial,  ///< the discriminator's updates, then the generator's, through the discriminator
  variational,  ///< an autoencoder's: the discriminator is its encoder, the generator its decoder, updated together
  cyclic,       ///< translations between two domains of images, there and back: both networks are pairs
};

/// How people are told of a step's losses.
struct LossNames {
  const char *discriminator, *generator;
};
constexpr LossNames loss_names(StepKind step) {
  if (step == StepKind::variational) return {"divergence", "reconstruction"};
  return {"discriminator", "generator"};
}

struct Losses {
  /// The sum of its losses on real and on fake images, and the penalty; an encoder's is the divergence.
  double discriminator = 0;
  double generator = 0;    ///< a decoder's is that of the reconstruction; with the path length's penalty
  double path_length = 0;  ///< mean over the batch; 0: the step has not computed it
};

/// Random numbers of a step, one stream for each consumer.
struct StepRandom {
  RandomStream latent;
  RandomStream dropout;
  explicit StepRandom(std::uint64_t seed) : latent(seed, "kernel/latent"), dropout(seed, "kernel/dropout") {}
};

/// The floats in device memory to which a step writes its losses.
enum LossSlot {
  kLossReal,
  kLossFake,
  kLossPenalty,
  kLossGenerator,
  // A cyclic step has those above for its first pair of chains, and these.
  kLossOtherReal,
  kLossOtherFake,
  kLossOtherGenerator,
  kLossCycle,  // also the error of images that were reduced and restored
  kLossOtherCycle,
  // A model with lazy regularisation has these beside the first.
  kLossPath,
  kPathLength,
  kNothing,  // stays 0
  kLossSlots
};

/// Regularisation that only some steps have, weighted by the interval (StyleGAN2, Karras et al. 2020).
struct LazySteps {
  int penalty_every = 1;   ///< every so many steps have the gradient penalty
  int path_every = 0;      ///< every so many, at least 3, have the path length regularisation; 0: none has it
  std::size_t styles = 0;  ///< the generator's layer whose input are the style vectors
  bool any() const { return penalty_every > 1 || path_every > 0; }
};

/// The state of a progressively growing model (Karras et al. 2018): stage 0 makes the smallest images, each later stage
/// images of twice the size. While `fading`, the newest layers are blended in.
struct Growth {
  int stage = 0;
  bool fading = false;
  bool operator==(const Growth&) const = default;
};

/// Data that a Gan holds in addition to its networks.
struct GanOptions {
  bool average = false;           ///< keeps a moving average of the generator's parameters
  bool gradient_penalty = false;  ///< allocates the penalty's images and the discriminator's tangents
  /// How the networks store activations; with a gradient penalty the discriminator stores them plainly.
  ActivationStorage activations = {};
};

/// A model in training. It is built with its networks; prepare() then gives it memory and weights.
struct Gan {
  std::string model;
  ImageShape image;          ///< shape of the images that the networks make and judge now
  ImageShape whole = image;  ///< shape of the images in the last stage
  /// Weight of the newest layers while they fade in, from 0 to 1.
  std::shared_ptr<float> share = std::make_shared<float>(1.0F);
  bool fading = false;
  bool dense = false;  ///< the networks see an image's features as channels of one position
  float darkest = 0;   ///< the value of black in the networks' images, 0 or -1; white is 1
  StepKind step = StepKind::adversarial;
  LazySteps lazy = {};
  int reduction = 1;  ///< above 1 the generator's input are images of so many times fewer rows and columns
  int classes = 0;    ///< those of the labels that the networks see; 0: they see none
  /// [classes x batch]: 1 at an image's class, else 0. Shared with the layers that read it.
  std::shared_ptr<Tensor> labels = std::make_shared<Tensor>();
  Network generator;
  Network discriminator;

  // Set by prepare().
  int batch = 0;
  Tensor real = {};                     ///< [pixels x batch], in [darkest, 1]
  Tensor latent = {};                   ///< [inputs of the generator x batch]; no cyclic model has it
  Tensor d_logits = {};                 ///< [logits of an image x batch]: 1, or one for each patch
  float* losses = nullptr;              ///< [kLossSlots]
  Tensor coarse = {}, blurred = {};     ///< while fading: real images at half the size, and enlarged again
  Tensor between = {}, direction = {};  ///< the gradient penalty's images, and the tangent's direction
  Tensor style_direction = {};          ///< the tangent's direction of the path length regularisation
  double path_length = 0;               ///< moving average; Losses move it
  /// Only an autoencoder has these (TensorOps::sample_code). The gradient of its images is in `direction`.
  Tensor noise = {}, d_code = {};
  /// Only a cyclic model has these: the second domain's images, what the two chains of the generator make of both
  /// domains, and the gradient of such images. Chain 0 of the generator takes images of `real`, chain 1 those of
  /// `other`; each chain of the discriminator judges what that chain of the generator makes.
  Tensor other = {}, fake[2] = {}, d_fake = {};
  /// The real images that a chain of the generator takes.
  Tensor domain(std::size_t chain) const { return chain == 0 ? real : other; }
  Buffer small = {};
  Buffer shared = {};   ///< memory that both networks use in turns
  Buffer average = {};  ///< moving average of the generator's parameters; empty without GanOptions::average

  /// Allocates everything for batches of `batch_size` images and draws the initial weights from `seed`. Throws
  /// Infeasible if memory is short.
  void prepare(TensorOps& ops, int batch_size, std::uint64_t seed, GanOptions options = {});
  /// Makes images of the loader's bytes (see TensorOps::load_images) the real ones; those of the second domain follow
  /// those of the first, and a label's bytes for each class those of all images. While newest layers fade in, real
  /// images do so too: each is a mix of the image and its version at half the size.
  void place_real(TensorOps& ops, std::span<const std::uint8_t> host_bytes);
  /// Makes `of_image(i)` the class of each image i. Must be called between steps; does nothing without classes.
  void place_classes(TensorOps& ops, const std::function<int(int)>& of_image);
  /// Whether the generator makes images of images, and not of random numbers.
  bool takes_images() const { return step == StepKind::cyclic || reduction > 1; }
  /// The blocks of an image of which a reduced one has the means.
  BlockShape reduced() const { return {image.channels, image.frames, image.height, image.width, 1, reduction}; }
  /// How often place_real() loads images or labels.
  int loads() const { return 1 + (step == StepKind::cyclic ? 1 : 0) + (classes > 0 ? 1 : 0); }
  /// Bytes that place_real() takes.
  std::size_t batch_bytes() const { return real.size() + other.size() + labels->size(); }
  bool has_average() const { return average.bytes() > 0; }

  /// Bytes that prepare(batch_size) would allocate on the device, by kind ("parameters", "activations", ...). Must be
  /// called before prepare().
  std::map<std::string, double> planned_memory_bytes(const TensorOps& ops, int batch_size, GanOptions options = {});

  /// Channels of an image as the networks see it (see TensorOps::load_images).
  int channels() const { return dense ? image.pixels() : image.channels; }

  /// Frees everything that take_over() does not copy.
  void release_activations();
  /// Copies weights, Adam's moments and the average of every parameter that `from` also has. Both must be prepared.
  void take_over(const Gan& from, TensorOps& ops);

  /// FLOPs of matrix products in one step (see gan_step) with this number of discriminator updates, divided by the
  /// batch; of lazy regularisation the mean. A multiply-add is 2; gradients of images and latents that are not computed
  /// are not counted.
  double step_flops_per_image(int discriminator_updates = 1, bool gradient_penalty = false) const;
};

}  // namespace ganymede::kernel
