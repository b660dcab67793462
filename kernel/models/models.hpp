#pragma once
// The models that can be trained. Each is an object that describes itself completely; it is made in a separate file and
// registered in models.cpp.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernel/gan_step.hpp"

namespace ganymede::kernel {

struct Model {
  std::string_view name;     ///< as --model takes it: "dcgan-64"
  std::string_view summary;  ///< one line for lists and help
  /// Image shapes that the model can be built for, at least one. The first is used unless the user or the data set
  /// chooses one.
  std::vector<ImageShape> images;
  /// Builds both networks for one of `images`. A model that does not grow ignores the growth.
  Gan (*build)(ImageShape image, Growth growth);
  AdamParameters adam;  ///< default settings of the optimizer, those of the model's authors
  AdversarialLoss loss = AdversarialLoss::non_saturating;  ///< default loss
  float penalty = 10;                                      ///< see StepOptions
  /// Number of sizes that training passes through for `image`, from the smallest on; null for a model that does not
  /// grow.
  int (*stages)(ImageShape image) = nullptr;

  bool grows() const { return stages != nullptr; }
  /// The model as it is at the end of training: at full size, with nothing fading in.
  Growth final_growth(ImageShape image) const { return {grows() ? stages(image) - 1 : 0, false}; }
  Gan build_final(ImageShape image) const { return build(image, final_growth(image)); }
  Gan build_default() const { return build_final(images.front()); }
};

/// All models, in the order in which they are listed.
std::span<const Model> models();
std::vector<std::string> model_names();

/// The model of this name. Throws ConfigError with the known names and the nearest one if there is none.
const Model& find_model(std::string_view name);

/// The form in which a model is trained at some step, and how long it keeps that form.
struct TrainingStage {
  Growth growth;
  float share = 1;               ///< weight of the layers that fade in, above 0, at most 1
  std::int64_t ends_after = -1;  ///< number of steps after which the next stage begins; -1: this is the last
};
/// The stage after `steps_done` steps, where each size is first faded in and then trained at for `stage_steps` steps
/// each (the smallest size is not faded in). With `stage_steps` 0 the model has its final form from the first step.
TrainingStage stage_after(const Model& model, ImageShape image, std::int64_t steps_done, std::int64_t stage_steps);
/// "16x16" or "16x16 fading in"; empty for a model that does not grow.
std::string stage_name(const Gan& gan);

/// "32x32x3": height, width, channels. Clips have their number of frames at the end: "32x32x3x8".
std::string to_string(ImageShape image);
/// The one of the model's image shapes that to_string() writes as `text`. Throws ConfigError with the model's shapes if
/// there is none.
ImageShape find_image(const Model& model, std::string_view text);

}  // namespace ganymede::kernel
