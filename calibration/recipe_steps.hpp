#pragma once
// Published steps of recipes: where one of the same GPU is known it is the step, and the model of kernel times carries
// it to other batches, images and GPUs.

#include <optional>
#include <string>

#include "calibration/kernels/gpu_sheets.hpp"

namespace ganymede::calibration {

/// The measured step that is nearest to what is asked.
struct RecipeAnchor {
  double ratio = 1;    ///< measured over what the model of kernel times says of it
  bool is_it = false;  ///< it is of the same GPU, configuration, images and pass
  double error = 0;    ///< half of the 90 % interval of ln(step) for what is carried from it
  std::string text;    ///< "measured: NVIDIA, 2020, on V100: 590 ms for 8 images of 512 pixels"
};

/// Half of the 90 % interval of ln(step) for a step that is carried from one of the same GPU; from one of a recipe that
/// is alike; from one of another GPU; and that the kernels alone say. Of bench/recipes.py, which leaves the steps of a
/// GPU out: the steps of two StyleGAN2 are 16 and 23 % off if they are predicted from each other's; CycleGAN's on three
/// GPUs by up to 0.15 of ln, the eighteen pairs of bench/networks.py by at most 0.17, StyleGAN3-T's by up to 0.56. By
/// kernels alone the steps of these four recipes, on one to three GPUs each, are up to 0.51 off.
inline constexpr double kSameGpuError = 0.2, kAlikeError = 0.4, kOtherGpuError = 0.55, kAloneError = 0.55;

/// The nearest of a recipe's measured steps for a pass of so many images: its own before those of a recipe that is
/// alike (whose configuration reads "stylegan3-t/paper"); of the same GPU, else of the one whose data sheet is nearest,
/// for layers in less than 32 bits only with tensor cores of the same generation: StyleGAN3-T's step on a V100 and an
/// A100 is 0.4 of ln off on average if it is carried from the other, and by kernels alone 0.12 and 0.38; then
/// of the nearest size of images, of the same configuration, of the nearest pass, and on the fewest GPUs: what reducing
/// gradients adds to a step on several is in it, some percent. Nothing if the recipe has none.
std::optional<RecipeAnchor> recipe_anchor(const std::string& recipe, const GpuSheet& target, int pass);

}  // namespace ganymede::calibration
