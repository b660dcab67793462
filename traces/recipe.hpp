#pragma once
// Recipes: trainings as their authors run them (documents/recipe.hpp), for images of a size on a number of GPUs. A name
// is that of a recipe that comes with the program (traces/recipes) or a file's, then a configuration and options:
//
//   stylegan2-ada   stylegan2-ada/paper512?image=1024&gpus=8   mine.json?batch=16
//
// Options: image, gpus, batch (images of all GPUs), batch_per_gpu (of a pass), precision, and each of its settings.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "documents/recipe.hpp"
#include "traces/layer_list.hpp"

namespace ganymede::traces {

/// "recipe:NAME" names the trace that a recipe makes.
inline constexpr std::string_view kRecipe = "recipe:";

/// The images of a step: of all GPUs, of a pass on one GPU, and the passes.
struct RecipeBatch {
  int all = 0, pass = 0, passes = 1;
};

/// `software.name` of a trace that a recipe made; `software.version` is the recipe's name, from the working directory.
inline constexpr std::string_view kRecipeSoftware = "recipe";

struct Recipe {
  documents::Recipe document;
  std::string name;                    ///< as it was given, but that a file's path is from the working directory
  std::string config;                  ///< "auto"; empty: it has none
  documents::RecipeTraining training;  ///< with what configuration and options change
  LayerSettings settings;              ///< "image" too
  LayerList layers;                    ///< networks, precisions and the passes of a mean step
  std::vector<int> sizes;              ///< the images for which it is, pixels of a side
  int gpus = 0;                        ///< that the name states; 0: none

  /// The images of a step on so many GPUs. The batch of all is the recipe's for the GPUs of its name, or where it names
  /// none for these. Throws ConfigError if they do not divide it.
  RecipeBatch batch_on(int workers) const;
  /// The images of a step on so many GPUs, whether or not these divide them; 0: the recipe states none.
  int batch_for(int workers) const;

  std::string trace_name() const { return std::string(kRecipe) + name; }
  /// Images until the target at a batch of so many, for a data set where the target is in epochs; 0: it states none.
  std::int64_t images(int batch, std::int64_t dataset_images) const;
};

/// Resolves a name as above; a file's path is relative to `directory`. Throws ConfigError for an unknown recipe,
/// configuration or option, with the nearest; for a size that the layers do not have; and for a batch that the GPUs of
/// the name and their passes do not divide.
Recipe resolve_recipe(const std::string& name, const std::filesystem::path& directory = {});
/// True for a trace that a recipe made which reduces all gradients of a network at once, after its backward pass.
bool reduces_flat(const TraceSoftware& software);
/// The name of a recipe, for which a file's path is relative to `directory`, as one from the working directory.
std::string recipe_from(const std::string& name, const std::filesystem::path& directory);

/// True for the name of a file, perhaps with a configuration and options.
bool is_recipe_file(const std::string& name);
/// The recipe's file or name, without configuration and options.
std::string recipe_base(const std::string& name);

/// Names of the recipes that come with the program.
std::vector<std::string> recipe_names();
/// One that comes with the program, by its name without configuration. Throws ConfigError with the nearest name.
documents::Recipe built_in_recipe(const std::string& name);

}  // namespace ganymede::traces
