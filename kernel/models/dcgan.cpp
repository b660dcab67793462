// DCGAN (Radford, Metz and Chintala 2016), as in PyTorch's DCGAN example, for 28x28 grey, 32x32 and 64x64 colour
// images. The generator turns 100 latents into an image by transposed convolutions; the discriminator turns an image
// into a logit by convolutions. The layers next to the image have 64 channels; each halving of the size doubles them.
// Batch norm follows every convolution except those at the images and the logit. The generator uses ReLU, the
// discriminator LeakyReLU with slope 0.2. Adam has a learning rate of 2e-4 and beta1 0.5.
//
// The smallest images inside the networks have 4x4 pixels for 32x32 and 64x64, and 7x7 for 28x28.
//
// Two more models have the same layers. A conditional GAN (Mirza and Osindero 2014) gives both networks the image's
// class beside their input: the first convolution's weights for it are an embedding of the class. A variational
// autoencoder (Kingma and Welling 2014) has the generator as its decoder, of 32 latents, and the discriminator, with
// twice as many outputs, as its encoder; Adam has PyTorch's defaults.

#include <fmt/format.h>

#include "kernel/models/models.hpp"

namespace ganymede::kernel {
namespace {

constexpr int kDcganLatent = 100, kCodeLatent = 32;
constexpr int kClasses = 10;  ///< those of MNIST, CIFAR-10 and the built-in images
constexpr int kChannels = 64;
constexpr float kDcganSlope = 0.2F;
constexpr float kScaleDeviation = 0.02F;

/// The images and classes for which a network is built.
struct Form {
  ImageShape image;
  int least;  ///< rows of the smallest images inside
  int classes = 0;
  std::shared_ptr<const Tensor> labels = {};  ///< see Gan::labels
};

/// The convolution that halves an image of `size` x `size` pixels.
ConvolutionShape halving(int channels, int size, int to_channels) {
  return {channels, size, size, to_channels, 4, 2, 1};
}

/// The convolution whose kernel covers a whole image of `size` x `size` pixels.
ConvolutionShape whole(int channels, int size, int to_channels) {
  return {channels, size, size, to_channels, size, 1, 0};
}

void add_label(Layers& layers, const Form& form, int channels, int positions) {
  if (form.classes > 0) layers.push_back(labelled("label", channels, positions, form.classes, form.labels));
}

Network generator(const char* name, const Form& form, int latents) {
  const ImageShape image = form.image;
  Layers layers;
  int channels = kChannels * image.height / form.least / 2, size = form.least, number = 1;
  const auto add = [&](const ConvolutionShape& shape) {
    layers.push_back(transposed_convolution(fmt::format("conv{}", number), shape));
    const BatchNormShape normal{channels, size * size, kScaleDeviation};
    layers.push_back(batch_norm_leaky(fmt::format("norm{}", number++), normal, 0));
  };
  add_label(layers, form, latents, 1);
  add(whole(channels, size, latents + form.classes));
  while (2 * size < image.height) {
    channels /= 2;
    size *= 2;
    add(halving(channels, size, 2 * channels));
  }
  layers.push_back(
      transposed_convolution(fmt::format("conv{}", number), halving(image.channels, image.height, channels)));
  layers.push_back(tanh_image("image", image.pixels()));
  return {name, std::move(layers)};
}

Network discriminator(const char* name, const Form& form, int outputs) {
  const ImageShape image = form.image;
  Layers layers;
  int channels = kChannels, size = image.height / 2, number = 1;
  add_label(layers, form, image.channels, image.height * image.width);
  layers.push_back(convolution("conv1", halving(image.channels + form.classes, image.height, channels)));
  layers.push_back(leaky("leaky1", channels * size * size, kDcganSlope));
  for (; size > form.least; size /= 2, channels *= 2) {
    layers.push_back(convolution(fmt::format("conv{}", ++number), halving(channels, size, 2 * channels)));
    const BatchNormShape shape{2 * channels, size * size / 4, kScaleDeviation};
    layers.push_back(batch_norm_leaky(fmt::format("norm{}", number), shape, kDcganSlope));
  }
  layers.push_back(convolution(fmt::format("conv{}", ++number), whole(channels, size, outputs)));
  return {name, std::move(layers)};
}

/// Builds the model whose generator starts with `first` x `first` pixels.
template <int first, int classes = 0>
Gan build_dcgan(ImageShape image, Growth) {
  const auto labels = std::make_shared<Tensor>();
  const Form form{image, first, classes, labels};
  return {.model = fmt::format("{}-{}", classes > 0 ? "cgan" : "dcgan", image.height),
          .image = image,
          .darkest = -1,
          .classes = classes,
          .labels = labels,
          .generator = generator("generator", form, kDcganLatent),
          .discriminator = discriminator("discriminator", form, 1)};
}

template <int first>
Gan build_autoencoder(ImageShape image, Growth) {
  return {.model = fmt::format("vae-{}", image.height),
          .image = image,
          .darkest = -1,
          .step = StepKind::variational,
          .generator = generator("decoder", {image, first}, kCodeLatent),
          .discriminator = discriminator("encoder", {image, first}, 2 * kCodeLatent)};
}

constexpr AdamParameters kDcganAdam{.learning_rate = 2e-4F, .beta1 = 0.5F};
constexpr AdamParameters kCodeAdam{.learning_rate = 1e-3F};

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

Model cgan_28() {
  return {.name = "cgan-28",
          .summary = "dcgan-28 with the image's class, of 10, as input of both networks",
          .images = {{28, 28, 1}},
          .build = build_dcgan<7, kClasses>,
          .adam = kDcganAdam};
}

Model cgan_32() {
  return {.name = "cgan-32",
          .summary = "dcgan-32 with the image's class, of 10, as input of both networks",
          .images = {{32, 32, 3}},
          .build = build_dcgan<4, kClasses>,
          .adam = kDcganAdam};
}

Model vae_28() {
  return {.name = "vae-28",
          .summary = "a variational autoencoder of dcgan-28's layers, 32 latents",
          .images = {{28, 28, 1}},
          .build = build_autoencoder<7>,
          .adam = kCodeAdam};
}

Model vae_32() {
  return {.name = "vae-32",
          .summary = "a variational autoencoder of dcgan-32's layers, 32 latents",
          .images = {{32, 32, 3}},
          .build = build_autoencoder<4>,
          .adam = kCodeAdam};
}

}  // namespace ganymede::kernel
