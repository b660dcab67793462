#include "plan/request_recipe.hpp"

#include <fmt/format.h>

#include <map>

#include "common/errors.hpp"
#include "common/json.hpp"

namespace ganymede::plan {
namespace {
constexpr int kMostGpus = 4096;  // of a recipe's batch; far more than one is split over
}

traces::Recipe read_recipe(const JsonNode& node, Request& request) {
  const std::string name = node.as_string();
  try {
    traces::Recipe recipe = traces::resolve_recipe(name, node.directory());
    for (const documents::RecipePause& pause : recipe.training.pauses)
      if (pause.name.find("snapshot") != std::string::npos && pause.every_kimg > 0)
        request.recipe_saves = fmt::format("{:.0f} images", 1000 * pause.every_kimg);
    request.trace_choice = fmt::format("the recipe {}{}: {}", name,
                                       recipe.config.empty() ? "" : fmt::format(" (configuration {})", recipe.config),
                                       recipe.document.about);
    return recipe;
  } catch (const ConfigError& error) {
    node.fail(error.what());
  }
}

std::int64_t recipe_images(const JsonNode& workload, const traces::Recipe& recipe) {
  constexpr std::int64_t kMostImages = 1'000'000'000'000;
  const bool has_epochs = workload.value().contains("dataset");
  const std::int64_t epoch = has_epochs ? workload.child("dataset").child("images").as_integer(1, kMostImages) : 0;
  const std::int64_t images = recipe.images(recipe.training.batch, epoch);
  if (images == 0)
    workload.fail(
        recipe.training.epochs > 0
            ? "the recipe's target is in epochs, expected \"dataset\" (--dataset-images), to know how many images one "
              "has"
            : "the recipe states no target, expected \"images\" or \"epochs\"");
  return images;
}

void add_recipe_batches(const JsonNode& at, const traces::Recipe& recipe, Request& request) {
  std::map<std::pair<int, int>, std::vector<int>> shares;  // GPUs by images on each and their passes
  std::string refused;
  for (int gpus = 1; gpus <= kMostGpus; ++gpus) {
    try {
      const traces::RecipeBatch split = recipe.batch_on(gpus);
      shares[{split.pass * split.passes, split.passes}].push_back(gpus);
    } catch (const ConfigError& error) {
      if (refused.empty()) refused = error.what();
    }
  }
  for (auto& [share, gpus] : shares) {
    Request::Batch batch{share.first, {}, share.second, std::move(gpus)};
    for (std::size_t i = 0; i < request.trace.batches.size(); ++i)
      if (request.trace.batches[i].batch * batch.passes == batch.per_gpu) batch.stages.push_back(i);
    if (!batch.stages.empty()) request.batches.push_back(std::move(batch));
  }
  if (!request.batches.empty()) return;
  if (shares.empty()) at.fail(refused);
  at.fail(
      fmt::format("found passes of {} images or more on a GPU, expected at most {}: batch_per_gpu=IMAGES behind the "
                  "\"?\" accumulates",
                  shares.begin()->first.first / shares.begin()->first.second, request.trace.batches.back().batch));
}

}  // namespace ganymede::plan
