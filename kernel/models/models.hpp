#pragma once
// The models that can be trained: one file and one row of the table each.

#include <span>
#include <string_view>
#include <vector>

#include "kernel/gan_step.hpp"

namespace ganymede::kernel {

struct Model {
  std::string_view name, summary;
  std::vector<ImageShape> images;  ///< that it is made for; the first unless a user or the data say otherwise
  Gan (*build)(ImageShape image, Growth growth);  ///< one of these
  AdamParameters adam;                            ///< as its authors train it
  AdversarialLoss loss = AdversarialLoss::non_saturating;
  int (*stages)(ImageShape image) = nullptr;  ///< of a model that grows

  bool grows() const { return stages != nullptr; }
  Gan grown(ImageShape image) const { return build(image, grown_up(image)); }
  Gan build_default() const { return grown(images.front()); }
  /// Its last form; the only one of a model that does not grow.
  Growth grown_up(ImageShape image) const { return {grows() ? stages(image) - 1 : 0, false}; }
};

Gan build_mlp_gan(ImageShape image, Growth);
Gan build_dcgan_28(ImageShape image, Growth);
Gan build_dcgan_32(ImageShape image, Growth);
Gan build_dcgan_64(ImageShape image, Growth);
Gan build_progressive_gan(ImageShape image, Growth growth);
Gan build_progressive_gan_video(ImageShape image, Growth growth);

/// Stages from 4x4 to `image`, and what a stage, from 0, makes.
int progressive_stages(ImageShape image);
ImageShape progressive_image(ImageShape image, int stage);

/// Where a training stands, and the share of the layers that fade in.
struct Place {
  Growth growth;
  float share = 1;
  std::int64_t until = -1;  ///< the step with which another place begins; -1: never
};
/// After so many steps when each fading in and each stay lasts `stage_steps`; 0: grown up from the first step.
Place place_at(const Model& model, ImageShape image, std::int64_t steps_done, std::int64_t stage_steps);
/// "16x16", "16x16 fading in"; empty for a model that does not grow.
std::string stage_name(const Gan& gan);

std::span<const Model> models();

/// ConfigError with the known names and the nearest.
const Model& find_model(std::string_view name);

/// "32x32x3": rows, columns, channels; of clips "32x32x3x8", the frames behind.
std::string to_string(ImageShape image);
/// One of the model's, by that text. ConfigError with those that there are.
ImageShape find_image(const Model& model, std::string_view text);

}  // namespace ganymede::kernel
