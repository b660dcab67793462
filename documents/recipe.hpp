#pragma once
// A recipe, `ganymede.recipe/1`: a training as its authors run it, so that its time and its memory can be predicted.
// The comments of members say what the descriptions (recipe.cpp) do not.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "documents/walk.hpp"

namespace ganymede::documents {

inline constexpr std::string_view kRecipeSchema = "ganymede.recipe/1";

/// A loss that is run in some steps only, and whose gradient is taken of a gradient (double backward).
struct RecipeRegularizer {
  std::string name, network;
  int every = 1;
  double share = 1;
};

/// The images of a step by the size of images and the number of GPUs: `side` / image side on each GPU, at least one.
struct RecipeBatchRule {
  int side = 0, per_gpu = 0, most = 0;
};

struct RecipePause {
  std::string name;
  double every_kimg = 0;
  std::optional<double> seconds;
};

/// Members that a configuration or an option of a name may change.
struct RecipeTraining {
  int image = 0;  ///< 0: the native size of the layers
  std::string precision = "fp32";
  JsonText settings;
  std::vector<RecipeRegularizer> regularizers;
  std::string optimizer = "adam";
  bool moving_average = false;
  std::string augmentation;
  int batch = 0, batch_per_gpu = 0;
  std::optional<RecipeBatchRule> batch_rule;
  std::string gradients = "ddp";
  std::vector<RecipePause> pauses;
  double kimg = 0;
  int epochs = 0;
  std::int64_t steps = 0;
};

struct RecipeConfig {
  std::string name;
  int image_from = 0, image_to = 0;  ///< 0: no bound
  JsonText training;
};

/// A measured step: seconds for 1,000 images on all GPUs.
struct RecipeStep {
  static constexpr bool kIsRow = true;
  std::string config;
  int image = 0, gpus = 0, batch = 0, batch_per_gpu = 0;  ///< batch_per_gpu: images of one pass
  double s_per_kimg = 0;
};

/// The most memory that PyTorch or TensorFlow had handed out on one of the GPUs.
struct RecipePeak {
  static constexpr bool kIsRow = true;
  std::string config;
  int image = 0, gpus = 0, batch_per_gpu = 0;  ///< batch_per_gpu: images of one pass
  double gib = 0;
};

/// Steps and memory that one source has measured on one kind of GPU.
struct RecipeMeasurement {
  std::string gpu, by, source;
  std::vector<RecipeStep> rows;
  std::vector<RecipePeak> peaks;
};

struct Recipe {
  std::string name, about;
  int version = 1;
  std::map<std::string, std::string> sources;
  JsonText layers;
  RecipeTraining training;
  std::vector<RecipeConfig> configs;
  std::vector<RecipeMeasurement> measured;
};

void describe(Walk& walk, RecipeTraining& training);
void describe(Walk& walk, Recipe& recipe);

/// Reads a recipe. Throws ConfigError, located, for what its description does not allow.
Recipe read_recipe(const JsonNode& node);
/// The recipe as JSON text.
std::string recipe_text(const Recipe& recipe);

}  // namespace ganymede::documents
