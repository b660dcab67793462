#pragma once
// Published steps of recipes: where one of the same GPU is known it is the step, and the model of kernel times carries
// it to other batches, images and GPUs.

#include <optional>
#include <string>

#include "calibration/kernels/gpu_sheets.hpp"

namespace ganymede::calibration {

/// The measured step that is nearest to what is asked.
struct RecipeAnchor {
  /// The step over what the model of kernel times says of it; of another GPU or recipe its root, or 1 where it tells
  /// nothing of the GPU but that the recipe's list is about right.
  double ratio = 1;
  bool is_it = false;  ///< it is of the same GPU, configuration, images and pass
  double error = 0;    ///< half of the 90 % interval of ln(step) for what is carried from it
  std::string text;    ///< "measured: NVIDIA, 2020, on V100: 590 ms for 8 images of 512 pixels"
};

/// Half of the 90 % interval of ln(step) for a step that is carried from one of the same recipe and GPU, and from one
/// of another GPU, or of a recipe that is alike: as far as the widest of 15 carried steps of three publications is off
/// (StyleGAN3-T of 128 pixels from V100 to A100), which are too few to calibrate it.
inline constexpr double kSameGpuError = 0.2, kCarriedError = 0.28;

/// The nearest of a recipe's measured steps for a pass of so many images: its own before those of a recipe that is
/// alike (whose configuration reads "stylegan3-t/paper"); of the same GPU, else of the one whose data sheet is nearest;
/// then of the nearest size of images, of the same configuration, of the nearest pass, and on the fewest GPUs: what
/// reducing gradients adds to a step on several is in it, some percent. Nothing if the recipe has none.
std::optional<RecipeAnchor> recipe_anchor(const std::string& recipe, const GpuSheet& target, int pass);

}  // namespace ganymede::calibration
