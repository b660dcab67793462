#pragma once
// Published steps of recipes: where one of the same GPU is known it is the step, and the model of kernel times carries
// it to other batches, images and GPUs.

#include <optional>
#include <string>

#include "calibration/kernels/gpu_sheets.hpp"

namespace ganymede::calibration {

/// The measured step that is nearest to what is asked.
struct RecipeAnchor {
  double ratio = 1;    ///< of the step to what the model of kernel times says of it
  bool is_it = false;  ///< it is of the same GPU, configuration, images and pass
  double error = 0;    ///< half of the 90 % interval of ln(step) for what is carried from it
  std::string text;    ///< "measured: NVIDIA, 2020, on V100: 590 ms for 8 images of 512 pixels"
};

/// How many times as long a recipe's step takes as the model of kernel times says: the median of six recipes with
/// measured steps on one or two GPUs (bench/recipes.py), each the geometric mean of its own: StyleGAN2 1.21,
/// StyleGAN2-ADA 1.47, CycleGAN 1.48, StyleGAN3-T 1.62, HiFi-GAN 1.87, an NVAE without its flows 3.8. Without one of
/// them it is 1.48 or 1.62. A step on another GPU, or of a recipe that is alike, tells half of it: the ratio is the
/// geometric mean of its own and this one.
inline constexpr double kRecipeRatio = 1.55;

/// Half of the 90 % interval of ln(step) for a step that is carried from one of the same recipe and GPU; from one of
/// another GPU, or of a recipe that is alike; and that the kernels alone say. Six recipes are too few to calibrate
/// them: the second is the widest of 10 carried steps but one (StyleGAN3-T of 128 pixels between V100 and A100), the
/// last that of five recipes.
inline constexpr double kSameGpuError = 0.2, kCarriedError = 0.33, kAloneError = 0.55;

/// The nearest of a recipe's measured steps for a pass of so many images: its own before those of a recipe that is
/// alike (whose configuration reads "stylegan3-t/paper"); of the same GPU, else of the one whose data sheet is nearest;
/// then of the nearest size of images, of the same configuration, of the nearest pass, and on the fewest GPUs: what
/// reducing gradients adds to a step on several is in it, some percent. Nothing if the recipe has none.
std::optional<RecipeAnchor> recipe_anchor(const std::string& recipe, const GpuSheet& target, int pass);

}  // namespace ganymede::calibration
