#include "kernel/models/models.hpp"

#include <fmt/format.h>

#include "common/errors.hpp"
#include "common/json.hpp"

namespace ganymede::kernel {
namespace {

constexpr AdamParameters kMlp{.learning_rate = 1e-4F, .beta1 = 0.9F};    // the study's
constexpr AdamParameters kDcgan{.learning_rate = 2e-4F, .beta1 = 0.5F};  // Radford et al. 2016

// Karras et al. 2018.
constexpr AdamParameters kProgressive{.learning_rate = 1e-3F, .beta1 = 0.0F, .beta2 = 0.99F};

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
      {"progressive-gan",
       "grows from 4x4 to 32x32 ... 256x256 colour images; WGAN-GP; 64x64: 2.28 million parameters",
       {kCelebA, kCifar, {128, 128, 3}, {256, 256, 3}},
       build_progressive_gan,
       kProgressive,
       AdversarialLoss::wasserstein,
       progressive_stages},
      {"progressive-gan-video",
       "the same for clips, by 3-D convolutions: 8 frames of 32x32 or 16 of 64x64",
       {{32, 32, 3, 8}, {64, 64, 3, 16}},
       build_progressive_gan_video,
       kProgressive,
       AdversarialLoss::wasserstein,
       progressive_stages},
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

std::string to_string(ImageShape image) {
  const std::string text = fmt::format("{}x{}x{}", image.height, image.width, image.channels);
  return image.frames == 1 ? text : fmt::format("{}x{}", text, image.frames);
}

Place place_at(const Model& model, ImageShape image, std::int64_t steps_done, std::int64_t stage_steps) {
  if (!model.grows() || stage_steps == 0) return {.growth = model.grown_up(image)};
  // In turn a stay and a fading in, ending with the last stage's stay.
  const std::int64_t last = 2 * std::int64_t{model.stages(image)} - 2;
  const std::int64_t part = std::min<std::int64_t>(steps_done / stage_steps, last);
  Place place;
  place.growth = {static_cast<int>((part + 1) / 2), part % 2 == 1};
  if (part < last) place.until = (part + 1) * stage_steps;
  if (place.growth.fading)
    place.share = static_cast<float>(steps_done - part * stage_steps + 1) / static_cast<float>(stage_steps + 1);
  return place;
}

std::string stage_name(const Gan& gan) {
  if (!find_model(gan.model).grows()) return "";
  return fmt::format("{}x{}{}", gan.image.height, gan.image.width, gan.fading ? " fading in" : "");
}

ImageShape find_image(const Model& model, std::string_view text) {
  std::vector<std::string> known;
  for (const ImageShape image : model.images) {
    known.push_back(to_string(image));
    if (known.back() == text) return image;
  }
  throw ConfigError(fmt::format("--image: found \"{}\", expected {} for {}", text, list_of(known), model.name));
}

}  // namespace ganymede::kernel
