#include "kernel/models/models.hpp"

#include <fmt/format.h>

#include "common/errors.hpp"
#include "common/json.hpp"

namespace ganymede::kernel {
namespace {

constexpr Model kModels[] = {
    {"mlp-gan", "dense layers, 28x28 grey images, 2.29 million parameters", build_mlp_gan},
    {"dcgan-28", "convolutions, 28x28 grey images, 2.0 million parameters", build_dcgan_28},
    {"dcgan-32", "convolutions, 32x32 colour images, 1.73 million parameters", build_dcgan_32},
    {"dcgan-64", "convolutions, 64x64 colour images, 6.34 million parameters", build_dcgan_64},
};

}  // namespace

std::span<const Model> models() { return kModels; }

const Model& find_model(std::string_view name) {
  std::vector<std::string> known;
  for (const auto& model : kModels) {
    if (model.name == name) return model;
    known.emplace_back(model.name);
  }
  const auto meant = nearest(name, known);
  throw ConfigError(fmt::format("--model: found \"{}\", expected {}{}", name, list_of(known),
                                meant ? fmt::format("; did you mean \"{}\"?", *meant) : ""));
}

}  // namespace ganymede::kernel
