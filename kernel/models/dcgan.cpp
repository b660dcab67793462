// DCGAN (Radford, Metz and Chintala 2016), as in PyTorch's DCGAN example, for 28x28 grey, 32x32 and 64x64 colour
// images. The generator turns 100 latents into an image by transposed convolutions; the discriminator turns an image
// into a logit by convolutions. The layers next to the image have 64 channels; each halving of the size doubles them.
// Batch norm follows every convolution except those at the images and the logit. The generator uses ReLU, the
// discriminator LeakyReLU with slope 0.2. Adam has a learning rate of 2e-4 and beta1 0.5.
//
// The smallest images inside the networks have 4x4 pixels for 32x32 and 64x64, and 7x7 for 28x28.

#include <fmt/format.h>

#include "kernel/models/models.hpp"

namespace ganymede::kernel {
namespace {

constexpr int kDcganLatent = 100;
constexpr int kChannels = 64;
constexpr float kDcganSlope = 0.2F;
constexpr float kScaleDeviation = 0.02F;

/// The convolution that halves an image of `size` x `size` pixels.
ConvolutionShape halving(int channels, int size, int to_channels) {
  return {channels, size, size, to_channels, 4, 2, 1};
}

/// The convolution whose kernel covers a whole image of `size` x `size` pixels.
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

/// Builds the model whose generator starts with `first` x `first` pixels.
template <int first>
Gan build_dcgan(ImageShape image, Growth) {
  return {.model = fmt::format("dcgan-{}", image.height),
          .image = image,
          .darkest = -1,
          .generator = generator(image, first),
          .discriminator = discriminator(image, first)};
}

constexpr AdamParameters kDcganAdam{.learning_rate = 2e-4F, .beta1 = 0.5F};

}  // namespace

Model dcgan_28() {
  return {.name = "dcgan-28",
          .summary = "convolutions, 28x28 grey images, 1.08 million parameters",
          .images = {{28, 28, 1}},
          .build = build_dcgan<7>,
          .adam = kDcganAdam};
}

Model dcgan_32() {
  return {.name = "dcgan-32",
          .summary = "convolutions, 32x32 colour images, 1.73 million parameters",
          .images = {{32, 32, 3}},
          .build = build_dcgan<4>,
          .adam = kDcganAdam};
}

Model dcgan_64() {
  return {.name = "dcgan-64",
          .summary = "convolutions, 64x64 colour images, 6.34 million parameters",
          .images = {{64, 64, 3}},
          .build = build_dcgan<4>,
          .adam = kDcganAdam};
}

}  // namespace ganymede::kernel
