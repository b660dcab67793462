// The MLP GAN for 28x28 grey images (and, with as many inputs and outputs as they have pixels, 32x32 colour images) of
// "Computationally Efficient Neural Rendering for Generator Adversarial Networks Using a Multi-GPU Cluster in a Cloud
// Environment" (IEEE Access 2023, 10.1109/ACCESS.2023.3274201): 2,051,384 trainable parameters in the generator and
// 233,985 in the discriminator. The paper names no activation between the layers and no dropout rate: LeakyReLU of
// slope 0.2 and a rate of 0.3 are ours.

#include "kernel/models/models.hpp"

namespace ganymede::kernel {
namespace {

constexpr int kMlpLatent = 50;
constexpr float kMlpSlope = 0.2F;
constexpr float kDrop = 0.3F;

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
  layers.push_back(leaky_dropout("dropout1", 256, kMlpSlope, kDrop));
  layers.push_back(dense("dense2", 256, 128));
  layers.push_back(leaky_dropout("dropout2", 128, kMlpSlope, kDrop));
  layers.push_back(dense("dense3", 128, 1));  // the logit: the loss applies the sigmoid
  return {"discriminator", std::move(layers)};
}

}  // namespace

Gan build_mlp_gan(ImageShape image, Growth) {
  return {.model = "mlp-gan",
          .image = image,
          .dense = true,
          .darkest = 0,
          .generator = generator(image.pixels()),
          .discriminator = discriminator(image.pixels())};
}

}  // namespace ganymede::kernel
