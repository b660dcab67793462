// The MLP GAN, for 28x28 grey images, of
// "Computationally Efficient Neural Rendering for Generator Adversarial Networks Using a Multi-GPU Cluster in a Cloud
// Environment" (IEEE Access 2023, 10.1109/ACCESS.2023.3274201), with 2,051,384 trainable parameters in the generator
// and 233,985 in the discriminator. For 32x32 colour images its inputs and outputs are as many as their values. The
// paper names no activation between the layers and no dropout rate: LeakyReLU of slope 0.2 and a rate of 0.3 were
// chosen here; Adam's learning rate and beta1 are the paper's.

#include "kernel/models/models.hpp"

namespace ganymede::kernel {
namespace {

constexpr int kMlpLatent = 50;
constexpr float kMlpSlope = 0.2F;
constexpr float kDropRate = 0.3F;

Network generator(int pixels) {
  Layers layers;
  layers.push_back(dense("dense1", kMlpLatent, 1200));
  layers.push_back(batch_norm_leaky("norm1", {.channels = 1200}, kMlpSlope));
  layers.push_back(dense("dense2", 1200, 1000));
  layers.push_back(batch_norm_leaky("norm2", {.channels = 1000}, kMlpSlope));
  layers.push_back(dense("dense3", 1000, pixels));
  layers.push_back(sigmoid("image", pixels));  // images are scaled to [0, 1]
  return {"generator", std::move(layers)};
}

Network discriminator(int pixels) {
  Layers layers;
  layers.push_back(dense("dense1", pixels, 256));
  layers.push_back(leaky_dropout("dropout1", 256, kMlpSlope, kDropRate));
  layers.push_back(dense("dense2", 256, 128));
  layers.push_back(dropped_logit("dense3", 128, kMlpSlope, kDropRate));  // the loss applies the sigmoid
  return {"discriminator", std::move(layers)};
}

Gan build_mlp(ImageShape image, Growth) {
  return {.model = "mlp-gan",
          .image = image,
          .dense = true,
          .darkest = 0,
          .generator = generator(image.pixels()),
          .discriminator = discriminator(image.pixels())};
}

}  // namespace

Model mlp_gan() {
  return {.name = "mlp-gan",
          .summary = "dense layers, 28x28 grey or 32x32 colour images, 2.29 million parameters",
          .images = {{28, 28, 1}, {32, 32, 3}},
          .build = build_mlp,
          .adam = {.learning_rate = 1e-4F, .beta1 = 0.9F}};
}

}  // namespace ganymede::kernel
