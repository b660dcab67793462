#include "kernel/models/models.hpp"

#include <fmt/format.h>

#include "common/errors.hpp"
#include "common/json.hpp"

namespace ganymede::kernel {
namespace {

constexpr AdamParameters kMlp{.learning_rate = 1e-4F, .beta1 = 0.9F};    // the study's
constexpr AdamParameters kDcgan{.learning_rate = 2e-4F, .beta1 = 0.5F};  // Radford et al. 2016

constexpr ImageShape kMnist{28, 28, 1}, kCifar{32, 32, 3}, kCelebA{64, 64, 3};

const std::vector<Model>& all() {
  static const std::vector<Model> models{
      {"mlp-gan",
       "dense layers, 28x28 grey or 32x32 colour images, 2.29 million parameters",
       {kMnist, kCifar},
       build_mlp_gan,
       kMlp},
      {"dcgan-28", "convolutions, 28x28 grey images, 1.08 million parameters", {kMnist}, build_dcgan_28, kDcgan},
      {"dcgan-32", "convolutions, 32x32 colour images, 1.73 million parameters", {kCifar}, build_dcgan_32, kDcgan},
      {"dcgan-64", "convolutions, 64x64 colour images, 6.34 million parameters", {kCelebA}, build_dcgan_64, kDcgan},
  };
  return models;
}

}  // namespace

std::span<const Model> models() { return all(); }

const Model& find_model(std::string_view name) {
  std::vector<std::string> known;
  for (const auto& model : all()) {
    if (model.name == name) return model;
    known.emplace_back(model.name);
  }
  const auto meant = nearest(name, known);
  throw ConfigError(fmt::format("--model: found \"{}\", expected {}{}", name, list_of(known),
                                meant ? fmt::format("; did you mean \"{}\"?", *meant) : ""));
}

std::string to_string(ImageShape image) { return fmt::format("{}x{}x{}", image.height, image.width, image.channels); }

ImageShape find_image(const Model& model, std::string_view text) {
  std::vector<std::string> known;
  for (const ImageShape image : model.images) {
    known.push_back(to_string(image));
    if (known.back() == text) return image;
  }
  throw ConfigError(fmt::format("--image: found \"{}\", expected {} for {}", text, list_of(known), model.name));
}

}  // namespace ganymede::kernel
