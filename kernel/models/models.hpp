#pragma once
// The models that can be trained: one file and one row of the table each.

#include <span>
#include <string_view>
#include <vector>

#include "kernel/gan.hpp"

namespace ganymede::kernel {

struct Model {
  std::string_view name, summary;
  std::vector<ImageShape> images;  ///< that it is made for; the first unless a user or the data say otherwise
  Gan (*build)(ImageShape image);  ///< one of these
  AdamParameters adam;             ///< as its authors train it

  Gan build_default() const { return build(images.front()); }
};

Gan build_mlp_gan(ImageShape image);
Gan build_dcgan_28(ImageShape image);
Gan build_dcgan_32(ImageShape image);
Gan build_dcgan_64(ImageShape image);

std::span<const Model> models();

/// ConfigError with the known names and the nearest.
const Model& find_model(std::string_view name);

/// "32x32x3": rows, columns, channels.
std::string to_string(ImageShape image);
/// One of the model's, by that text. ConfigError with those that there are.
ImageShape find_image(const Model& model, std::string_view text);

}  // namespace ganymede::kernel
