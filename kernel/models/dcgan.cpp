// DCGAN (Radford, Metz and Chintala 2016) for 28x28 grey, 32x32 and 64x64 colour images: 64 channels at the image's
// end, doubled at each halving; transposed convolutions from 100 latents, batch norm everywhere but at the images and
// the logit; ReLU in the generator, LeakyReLU of slope 0.2 in the discriminator; Adam at 2e-4 with beta1 0.5. As in
// PyTorch's DCGAN example.
//
// 32x32 and 64x64 begin at 4x4 pixels; 28x28 at 7x7, with one halving less than 64x64.

#include <fmt/format.h>

#include "kernel/models/models.hpp"

namespace ganymede::kernel {
namespace {

constexpr int kDcganLatent = 100;
constexpr int kChannels = 64;
constexpr float kDcganSlope = 0.2F;
constexpr float kScaleDeviation = 0.02F;

/// The convolution that halves an image of `size` pixels.
ConvolutionShape halving(int channels, int size, int to_channels) {
  return {channels, size, size, to_channels, 4, 2, 1};
}

/// The convolution that sees a whole image of `size` pixels at once.
ConvolutionShape whole(int channels, int size, int to_channels) {
  return {channels, size, size, to_channels, size, 1, 0};
}

Network generator(ImageShape image, int least) {
  Layers layers;
  int channels = kChannels * image.height / least / 2, size = least, number = 1;
  const auto add = [&](const ConvolutionShape& shape) {
    layers.push_back(transposed_convolution(fmt::format("conv{}", number), shape));
    const BatchNormShape normal{channels, size * size, kScaleDeviation};
    layers.push_back(batch_norm_leaky(fmt::format("norm{}", number++), normal, 0));
  };
  add(whole(channels, size, kDcganLatent));
  while (2 * size < image.height) {
    channels /= 2;
    size *= 2;
    add(halving(channels, size, 2 * channels));
  }
  layers.push_back(
      transposed_convolution(fmt::format("conv{}", number), halving(image.channels, image.height, channels)));
  layers.push_back(tanh_image("image", image.pixels()));
  return {"generator", std::move(layers)};
}

Network discriminator(ImageShape image, int least) {
  Layers layers;
  int channels = kChannels, size = image.height / 2, number = 1;
  layers.push_back(convolution("conv1", halving(image.channels, image.height, channels)));
  layers.push_back(leaky("leaky1", channels * size * size, kDcganSlope));
  for (; size > least; size /= 2, channels *= 2) {
    layers.push_back(convolution(fmt::format("conv{}", ++number), halving(channels, size, 2 * channels)));
    const BatchNormShape shape{2 * channels, size * size / 4, kScaleDeviation};
    layers.push_back(batch_norm_leaky(fmt::format("norm{}", number), shape, kDcganSlope));
  }
  layers.push_back(convolution(fmt::format("conv{}", ++number), whole(channels, size, 1)));
  return {"discriminator", std::move(layers)};
}

Gan build(const char* name, ImageShape image, int least) {
  return {.model = name,
          .image = image,
          .darkest = -1,
          .generator = generator(image, least),
          .discriminator = discriminator(image, least)};
}

}  // namespace

Gan build_dcgan_28(ImageShape image, Growth) { return build("dcgan-28", image, 7); }
Gan build_dcgan_32(ImageShape image, Growth) { return build("dcgan-32", image, 4); }
Gan build_dcgan_64(ImageShape image, Growth) { return build("dcgan-64", image, 4); }

}  // namespace ganymede::kernel
