#include "documents/recipe.hpp"

#include "common/json.hpp"
#include "common/json_value.hpp"
#include "documents/forms.hpp"

namespace ganymede::documents {
namespace {

const About kSide = {.says = "pixels of a side", .low = 0, .high = 65536};
constexpr int kMostImages = 1 << 24;  // of a step
constexpr int kMostGpus = 65536;
constexpr double kLongestKimg = 1e9;  // seconds
constexpr double kMostGib = 65536;

/// A row of measured steps or peaks has no names by which its cells could be described with their bounds.
void check_measured(const JsonNode& node, const Recipe& recipe) {
  std::vector<JsonNode> cells;
  const auto require = [&](std::size_t cell, bool holds, const std::string& what) {
    if (!holds) cells.at(cell).expected(what);
  };
  const auto check_first = [&](const auto& row, std::size_t pass) {
    require(1, row.image >= 0 && row.image <= 65536, "an image of 0 to 65536 pixels");
    require(2, row.gpus >= 1 && row.gpus <= kMostGpus, "1 to 65536 GPUs");
    require(pass, row.batch_per_gpu >= 1 && row.batch_per_gpu <= kMostImages, "a pass of 1 to 16777216 images");
  };
  for (std::size_t i = 0; i < recipe.measured.size(); ++i) {
    const auto cells_of = [&](const char* member, std::size_t j) {
      return node.child("measured").as_array()[i].child(member).as_array()[j].as_array();
    };
    for (std::size_t j = 0; j < recipe.measured[i].rows.size(); ++j) {
      const RecipeStep& row = recipe.measured[i].rows[j];
      cells = cells_of("rows", j);
      check_first(row, 4);
      require(3, row.batch >= row.batch_per_gpu && row.batch <= kMostImages,
              "at least the images of a pass, and at most 16777216");
      require(5, row.s_per_kimg > 0 && row.s_per_kimg <= kLongestKimg, "seconds above 0, at most 1e9");
    }
    for (std::size_t j = 0; j < recipe.measured[i].peaks.size(); ++j) {
      const RecipePeak& peak = recipe.measured[i].peaks[j];
      cells = cells_of("peaks", j);
      check_first(peak, 3);
      const bool is_known = std::any_of(recipe.configs.begin(), recipe.configs.end(),
                                        [&](const RecipeConfig& config) { return config.name == peak.config; });
      require(0, peak.config.empty() || is_known, "the name of one of its configurations, or \"\"");
      require(4, peak.gib > 0 && peak.gib <= kMostGib, "GiB above 0, at most 65536");
    }
  }
}

}  // namespace

void describe(Walk& walk, RecipeRegularizer& one) {
  walk.member("name", one.name, {.says = "such as path_length, r1", .required = true});
  walk.member("network", one.network, {.says = "whose weights learn from it", .required = true});
  walk.member("every", one.every, {.says = "steps from one to the next", .low = 1});
  walk.member("share", one.share, {.says = "of the batch", .low = 0, .high = 1, .above_low = true});
}

void describe(Walk& walk, RecipeBatchRule& rule) {
  walk.member("side", rule.side, {.says = "images a GPU times the side of an image", .low = 1, .required = true});
  walk.member("per_gpu", rule.per_gpu, {.says = "at most, on a GPU", .low = 1, .required = true});
  walk.member("most", rule.most, {.says = "at most, in all, if each GPU has one", .low = 1, .required = true});
}

void describe(Walk& walk, RecipePause& pause) {
  walk.member("name", pause.name, kRequired);
  walk.member("every_kimg", pause.every_kimg, {.says = "thousands of images", .low = 0, .required = true});
  walk.member_if_any("seconds", pause.seconds, {.says = "where they are published", .low = 0});
}

void describe(Walk& walk, RecipeTraining& training) {
  walk.member_unless("image", training.image, 0, kSide);
  walk.member("precision", training.precision, {.choices = {"fp32", "tf32", "bf16", "fp16"}});
  walk.member_unless("settings", training.settings, {},
                     {.says = "numbers that the layers name; fp16_resolutions: the highest resolutions in fp16"});
  walk.member("regularizers", training.regularizers, {.says = "losses of some steps, with double backward"});
  walk.member("optimizer", training.optimizer, {.choices = {"adam", "sgd"}});
  walk.member("moving_average", training.moving_average, {.says = "of the generator's weights, after each step"});
  walk.member_unless("augmentation", training.augmentation, std::string());
  walk.member_unless("batch", training.batch, 0,
                     {.says = "images of a step, on all GPUs", .low = 0, .high = kMostImages});
  walk.member_unless("batch_per_gpu", training.batch_per_gpu, 0,
                     {.says = "most images of a pass on a GPU; more are accumulated", .low = 0, .high = kMostImages});
  walk.member_if_any("batch_rule", training.batch_rule, {.says = "in place of batch"});
  walk.member("gradients", training.gradients,
              {.says = "ddp: buckets while the backward pass runs; flat: one all-reduce after it; data-parallel: one "
                       "process for all GPUs",
               .choices = {"ddp", "flat", "data-parallel"}});
  walk.member("pauses", training.pauses, {.says = "evaluations and snapshots"});
  walk.member_unless("kimg", training.kimg, 0.0, {.says = "target, thousands of images", .low = 0});
  walk.member_unless("epochs", training.epochs, 0, {.says = "target", .low = 0});
  walk.member_unless("steps", training.steps, std::int64_t{0}, {.says = "target", .low = 0});
}

void describe(Walk& walk, RecipeConfig& config) {
  walk.member("name", config.name, kRequired);
  walk.member_unless("image_from", config.image_from, 0, {.says = "least image for which it holds", .low = 0});
  walk.member_unless("image_to", config.image_to, 0, {.says = "largest image for which it holds", .low = 0});
  walk.member("training", config.training, {.says = "members that replace those of training", .required = true});
}

void describe(Walk& walk, RecipeStep& step) {
  walk.row(step.config, step.image, step.gpus, step.batch, step.batch_per_gpu, step.s_per_kimg);
}

void describe(Walk& walk, RecipePeak& peak) {
  walk.row(peak.config, peak.image, peak.gpus, peak.batch_per_gpu, peak.gib);
}

void describe(Walk& walk, RecipeMeasurement& measurement) {
  walk.member("gpu", measurement.gpu, kRequired);
  walk.member("by", measurement.by, {.says = "who measured it, and when", .required = true});
  walk.member("source", measurement.source, kRequired);
  walk.member("rows", measurement.rows,
              {.says = "config, image, GPUs, batch of all GPUs, batch of a pass on a GPU, seconds for 1,000 images",
               .required = true});
  walk.member("peaks", measurement.peaks,
              {.says = "config, image, GPUs, batch of a pass on a GPU, GiB that the allocator has handed out at most"});
}

void describe(Walk& walk, Recipe& recipe) {
  walk.constant("schema", kRecipeSchema, kRequired);
  walk.member("name", recipe.name, kRequired);
  walk.member("about", recipe.about);
  walk.member("version", recipe.version, {.says = "grows when its numbers change", .low = 1});
  walk.member("sources", recipe.sources, {.says = "of each part, by its name", .required = true});
  walk.member("layers", recipe.layers,
              {.says = "a list of layers without schema and name, or list: the name of one that comes with the program",
               .required = true});
  walk.member("training", recipe.training, kRequired);
  walk.member("configs", recipe.configs, {.says = "in their order; those of one name and image together"});
  walk.member("measured", recipe.measured, {.says = "steps that were measured"});
}

Recipe read_recipe(const JsonNode& node) {
  JsonObject in(node);
  check_schema(in, kRecipeSchema);
  Recipe recipe;
  read(node, described(recipe));
  check_measured(node, recipe);
  return recipe;
}

std::string recipe_text(const Recipe& recipe) { return written(described(recipe)).dump(2) + "\n"; }

}  // namespace ganymede::documents
