// CycleGAN (Zhu et al. 2017) for 32x32 colour images: two generators translate between two domains of images of which
// no pairs are known, and two discriminators judge them. Against 256x256 images there is less of everything: 16
// channels next to the image for 64, three residual blocks for nine, and a discriminator that sees patches of 22x22
// pixels, of two halvings, for 70x70. Otherwise as its authors': instance norm, ReLU in the generators and LeakyReLU of
// slope 0.2 in the discriminators, least squares, cycles of weight 10, Adam with 2e-4 and beta1 0.5. Unlike theirs,
// paddings are zeros, sizes halve and double by convolutions of 4x4 for 3x3, the rate stays as it is, there are no
// losses of identity, and the discriminators see the step's own images instead of those that a buffer of 50 keeps from
// earlier steps.

#include <fmt/format.h>

#include <cmath>

#include "kernel/models/models.hpp"

namespace ganymede::kernel {
namespace {

constexpr int kCycleChannels = 16;  ///< of the generators, next to the image
constexpr int kJudgeChannels = 32;  ///< of the discriminators, next to the image
constexpr int kHalvings = 2, kBlocks = 3;
constexpr float kLeak = 0.2F;  ///< slope of LeakyReLU in discriminators, and in the restorer, whose authors learn it

/// A chain of layers whose names begin with the same word.
class Chain {
 public:
  /// `scaled`: initial weights outside of residual blocks keep the size of activations where no norms do (He et al.
  /// 2015); all others are those of a DCGAN.
  Chain(const char* name, int size, bool scaled = false) : name_(name), size_(size), scaled_(scaled) {}

  /// A convolution of the images so far, and what follows it.
  void convolve(int in, int out, int kernel, int stride, int padding, float slope, bool normal = true) {
    const ConvolutionShape shape{in, size_, size_, out, kernel, stride, padding};
    layers_.push_back(convolution(fmt::format("{}.conv{}", name_, ++number_), shape, deviation(in * kernel * kernel)));
    size_ = shape.out_height();
    follow(out, slope, normal);
  }
  /// Doubles the size.
  void enlarge(int in, int out, bool normal = true) {
    size_ *= 2;
    layers_.push_back(transposed_convolution(fmt::format("{}.conv{}", name_, ++number_),
                                             {out, size_, size_, in, 4, 2, 1}, deviation(in * 2 * 2)));
    follow(out, normal ? 0 : kLeak, normal);
  }
  void add_block(int number, int channels, bool normal = true) {
    const ConvolutionShape shape{channels, size_, size_, channels, 3, 1, 1};
    const int positions = size_ * size_;
    Layers inner;
    for (const int i : {1, 2}) {
      const float slope = i == 2 ? 1 : normal ? 0 : kLeak;
      inner.push_back(convolution(fmt::format("conv{}", i), shape));
      inner.push_back(normal ? instance_norm_leaky(fmt::format("norm{}", i), channels, positions, slope)
                             : bias_leaky(fmt::format("bias{}", i), channels, positions, 1, slope));
    }
    layers_.push_back(residual(fmt::format("{}.block{}", name_, number), std::move(inner)));
  }
  void add(std::unique_ptr<Layer> layer) { layers_.push_back(std::move(layer)); }
  std::string name_of(const char* layer) const { return fmt::format("{}.{}", name_, layer); }
  Layers take() { return std::move(layers_); }

 private:
  /// For numbers that are sums of so many products.
  float deviation(int products) const {
    return scaled_ ? std::sqrt(2.0F / static_cast<float>(products)) : kDcganDeviation;
  }
  void follow(int channels, float slope, bool normal) {
    const int positions = size_ * size_;
    if (normal)
      add(instance_norm_leaky(fmt::format("{}.norm{}", name_, number_), channels, positions, slope));
    else
      add(bias_leaky(fmt::format("{}.bias{}", name_, number_), channels, positions, 1, slope));
  }

  const char* name_;
  int size_, number_ = 0;
  bool scaled_;
  Layers layers_;
};

Layers translator(const char* name, ImageShape image) {
  Chain chain(name, image.height);
  int channels = kCycleChannels;
  chain.convolve(image.channels, channels, 7, 1, 3, 0);
  for (int i = 0; i < kHalvings; ++i, channels *= 2) chain.convolve(channels, 2 * channels, 4, 2, 1, 0);
  for (int block = 1; block <= kBlocks; ++block) chain.add_block(block, channels);
  for (int i = 0; i < kHalvings; ++i, channels /= 2) chain.enlarge(channels, channels / 2);
  chain.convolve(channels, image.channels, 7, 1, 3, 1, false);
  chain.add(tanh_image(chain.name_of("image"), image.pixels()));
  return chain.take();
}

/// Its outputs are logits of overlapping patches.
Layers judge(const char* name, ImageShape image) {
  Chain chain(name, image.height);
  chain.convolve(image.channels, kJudgeChannels, 4, 2, 1, kLeak, false);
  chain.convolve(kJudgeChannels, 2 * kJudgeChannels, 4, 2, 1, kLeak);
  chain.convolve(2 * kJudgeChannels, 1, 4, 1, 1, 1, false);
  return chain.take();
}

Gan build_cyclegan(ImageShape image, Growth) {
  return {.model = fmt::format("cyclegan-{}", image.height),
          .image = image,
          .darkest = -1,
          .step = StepKind::cyclic,
          .generator = {"generator", translator("ab", image), translator("ba", image)},
          .discriminator = {"discriminator", judge("b", image), judge("a", image)}};
}

constexpr int kRestoredChannels = 64, kReduction = 4;

/// Super-resolution (Ledig et al. 2017) in small: three residual blocks for 16, without batch norms and without the
/// skip around all of them; sizes double by transposed convolutions for shuffled pixels. The loss is that of least
/// squares on patches, with the absolute error of pixels (see gan_step.cpp) for the error of VGG's features.
Gan build_srgan(ImageShape image, Growth) {
  Chain chain("up", image.height / kReduction, true);
  chain.convolve(image.channels, kRestoredChannels, 3, 1, 1, kLeak, false);
  for (int block = 1; block <= kBlocks; ++block) chain.add_block(block, kRestoredChannels, false);
  chain.enlarge(kRestoredChannels, kRestoredChannels / 2, false);
  chain.enlarge(kRestoredChannels / 2, kRestoredChannels / 4, false);
  chain.convolve(kRestoredChannels / 4, image.channels, 7, 1, 3, 1, false);
  chain.add(tanh_image(chain.name_of("image"), image.pixels()));
  return {.model = fmt::format("srgan-{}", image.height),
          .image = image,
          .darkest = -1,
          .reduction = kReduction,
          .generator = {"generator", chain.take()},
          .discriminator = {"discriminator", judge("d", image)}};
}

}  // namespace

Model cyclegan_32() {
  return {.name = "cyclegan-32",
          .summary = "translates 32x32 colour images between two domains, there and back",
          .images = {{32, 32, 3}},
          .build = build_cyclegan,
          .adam = {.learning_rate = 2e-4F, .beta1 = 0.5F},
          .loss = AdversarialLoss::least_squares};
}

Model srgan_32() {
  return {.name = "srgan-32",
          .summary = "restores 8x8 colour images to 32x32, super-resolution in small",
          .images = {{32, 32, 3}},
          .build = build_srgan,
          .adam = {.learning_rate = 2e-4F, .beta1 = 0.5F},
          .loss = AdversarialLoss::least_squares};
}

}  // namespace ganymede::kernel
