#pragma once
// The models that can be trained: one file and one row of the table each.

#include <span>
#include <string_view>

#include "kernel/gan.hpp"

namespace ganymede::kernel {

struct Model {
  std::string_view name, summary;
  Gan (*build)();
  AdamParameters adam;  ///< as its authors train it
};

Gan build_mlp_gan();
Gan build_dcgan_28();
Gan build_dcgan_32();
Gan build_dcgan_64();

std::span<const Model> models();

/// ConfigError with the known names and the nearest.
const Model& find_model(std::string_view name);

}  // namespace ganymede::kernel
