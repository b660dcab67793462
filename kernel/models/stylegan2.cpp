// StyleGAN2 (Karras, Laine, Aittala, Hellsten, Lehtinen and Aila 2020), small enough for a CPU. A mapping network of
// dense layers turns a normalised latent into a style vector; the image grows from a learned constant through modulated
// and demodulated convolutions, and every size adds its colours to the image of the size before. The discriminator is
// residual, with the minibatch's standard deviation before its last convolutions. The loss is non-saturating, with R1
// every 16 steps and path length regularisation every 4; Adam has a rate of 2e-3, betas 0 and 0.99.
//
// R1's weight is the 0.01 of the authors' later code for CIFAR-10; the 10 of the paper is for faces of 1024x1024.
// Images are enlarged by nearest neighbour and shrunk by means of 2x2 pixels instead of the published filter [1 3 3 1].
// Noise inputs and mixed styles are left out, and the biases of the mapping network learn as fast as all others: only
// its weights have the published hundredth of the rate.

#include <fmt/format.h>

#include <algorithm>

#include "kernel/models/equalized.hpp"
#include "kernel/models/models.hpp"

namespace ganymede::kernel {
namespace {

constexpr int kLatents = 64, kStyles = 64, kMappingLayers = 4;
constexpr int kStyledChannels = 64, kStyledPixels = 512;
constexpr Equalized kMapping{.rate = 0.01F};
/// The branches of a residual block, of which the mean is taken: (a + b) / sqrt(2) is the mean of sqrt(2) a and sqrt(2)
/// b.
constexpr Equalized kMainBranch{.gain = 2}, kSkipBranch{.slope = 1, .gain = 1.41421356F};

int channels_at(int size) { return std::min(kStyledChannels, kStyledPixels / size); }
ConvolutionShape same(int size, int from, int to) { return {from, size, size, to, 3, 1, 1}; }
ConvolutionShape pointwise(int size, int from, int to) { return {from, size, size, to, 1, 1, 0}; }
/// The blocks of 2x2 pixels of an image of size x size.
BlockShape blocks(int size, int channels) { return {.channels = channels, .height = size, .width = size}; }

Network generator(ImageShape image, int least, LazySteps& lazy) {
  Builder built;
  const auto styles = std::make_shared<Styles>(Styles{.width = kStyles});
  const auto styled = [&](const std::string& name, int size, int from) {
    const ConvolutionShape shape = same(size, from, channels_at(size));
    built.add(modulated_convolution(name, shape, styles));
    built.add(bias_leaky(name + ".bias", shape.out_channels, size * size, Equalized{}.gain, Equalized{}.slope));
  };
  built.add(pixel_norm("latent.norm", kLatents, 1));
  for (int i = 1; i <= kMappingLayers; ++i)
    built.convolution(fmt::format("map{}", i), pointwise(1, i == 1 ? kLatents : kStyles, kStyles), kMapping);
  lazy.styles = built.layers.size();
  built.add(learned_constant("constant", channels_at(least), least, styles));
  for (int size = least; size <= image.height; size *= 2) {
    const std::string name = fmt::format("conv{}", size);
    if (size > least) {
      built.add(upsample(fmt::format("up{}", size), blocks(size, channels_at(size / 2))));
      styled(name + ".1", size, channels_at(size / 2));
    }
    styled(size > least ? name + ".2" : name, size, channels_at(size));
    built.add(to_colours(fmt::format("rgb{}", size),
                         {.shape = pointwise(size, channels_at(size), image.channels),
                          .first = size == least,
                          .last = size == image.height},
                         styles));
  }
  return {"generator", std::move(built.layers)};
}

Network discriminator(ImageShape image, int least) {
  Builder built;
  built.convolution("rgb", pointwise(image.height, image.channels, channels_at(image.height)));
  for (int size = image.height; size > least; size /= 2) {
    const int from = channels_at(size), to = channels_at(size / 2);
    Builder main, skip;
    main.convolution(fmt::format("conv{}.1", size), same(size, from, from));
    main.convolution(fmt::format("conv{}.2", size), same(size, from, to), kMainBranch);
    main.add(downsample(fmt::format("down{}", size), blocks(size, to)));
    skip.add(downsample(fmt::format("down{}.skip", size), blocks(size, from)));
    skip.convolution(fmt::format("skip{}", size), pointwise(size / 2, from, to), kSkipBranch);
    built.add(mean_of(std::move(main.layers), std::move(skip.layers)));
  }
  const int channels = channels_at(least);
  built.add(minibatch_stddev("deviation", channels, least * least));
  built.convolution(fmt::format("conv{}.1", least), same(least, channels + 1, channels));
  built.convolution(fmt::format("conv{}.2", least), {channels, least, least, channels, least, 1, 0});
  built.convolution("logit", pointwise(1, channels, 1), kPlain);
  return {"discriminator", std::move(built.layers)};
}

/// Builds the model whose generator starts with `least` x `least` pixels.
template <int least>
Gan build_stylegan2(ImageShape image, Growth) {
  LazySteps lazy{.penalty_every = 16, .path_every = 4};
  Network makes = generator(image, least, lazy);
  return {.model = fmt::format("stylegan2-{}", image.height),
          .image = image,
          .darkest = -1,
          .lazy = lazy,
          .generator = std::move(makes),
          .discriminator = discriminator(image, least)};
}

Model stylegan2(const char* name, const char* summary, ImageShape image, Gan (*build)(ImageShape, Growth)) {
  return {.name = name,
          .summary = summary,
          .images = {image},
          .build = build,
          .adam = {.learning_rate = 2e-3F, .beta1 = 0, .beta2 = 0.99F},
          .loss = AdversarialLoss::r1,
          .penalty = 0.01F};
}

}  // namespace

Model stylegan2_28() {
  return stylegan2("stylegan2-28", "modulated convolutions, lazy R1 and path length; 28x28 grey images", {28, 28, 1},
                   build_stylegan2<7>);
}

Model stylegan2_32() {
  return stylegan2("stylegan2-32", "modulated convolutions, lazy R1 and path length; 32x32 colour images", {32, 32, 3},
                   build_stylegan2<4>);
}

}  // namespace ganymede::kernel
