#include "kernel/models/models.hpp"

#include <fmt/format.h>

#include "common/errors.hpp"
#include "common/json.hpp"
#include "common/text.hpp"

// The register: one row for each model, in the order in which they are listed. ROW(NAME) stands for the model that
// NAME() returns, which is defined in another file of this folder. Lists, help, checks and tests walk this table.
// clang-format off
#define GANYMEDE_MODELS(ROW) \
  ROW(mlp_gan) \
  ROW(dcgan_28) \
  ROW(dcgan_32) \
  ROW(dcgan_64) \
  ROW(cgan_28) \
  ROW(cgan_32) \
  ROW(vae_28) \
  ROW(vae_32) \
  ROW(cyclegan_32) \
  ROW(srgan_32) \
  ROW(stylegan2_28) \
  ROW(stylegan2_32) \
  ROW(progressive_gan) \
  ROW(progressive_gan_video)
// clang-format on

namespace ganymede::kernel {

#define GANYMEDE_DECLARE(name) Model name();
GANYMEDE_MODELS(GANYMEDE_DECLARE)
#undef GANYMEDE_DECLARE

std::span<const Model> models() {
#define GANYMEDE_CALL(name) name(),
  static const std::vector<Model> models{GANYMEDE_MODELS(GANYMEDE_CALL)};
#undef GANYMEDE_CALL
  return models;
}

std::vector<std::string> model_names() { return names_of(models()); }

const Model& find_model(std::string_view name) {
  for (const Model& model : models())
    if (model.name == name) return model;
  const std::vector<std::string> known = model_names();
  throw ConfigError(
      fmt::format("--model: found \"{}\", expected {}{}", name, list_of(known), did_you_mean(name, known)));
}

std::string to_string(ImageShape image) {
  const std::string text = fmt::format("{}x{}x{}", image.height, image.width, image.channels);
  return image.frames == 1 ? text : fmt::format("{}x{}", text, image.frames);
}

TrainingStage stage_after(const Model& model, ImageShape image, std::int64_t steps_done, std::int64_t stage_steps) {
  if (!model.grows() || stage_steps == 0) return {.growth = model.final_growth(image)};
  // The training is divided into parts of stage_steps steps. Even parts train at a size, odd ones fade in the next
  // size; the last part is even and does not end.
  const std::int64_t last = 2 * std::int64_t{model.stages(image)} - 2;
  const std::int64_t part = std::min<std::int64_t>(steps_done / stage_steps, last);
  TrainingStage stage;
  stage.growth = {static_cast<int>((part + 1) / 2), part % 2 == 1};
  if (part < last) stage.ends_after = (part + 1) * stage_steps;
  if (stage.growth.fading)
    stage.share = static_cast<float>(steps_done - part * stage_steps + 1) / static_cast<float>(stage_steps + 1);
  return stage;
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
