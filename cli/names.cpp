#include "cli/names.hpp"

#include <algorithm>
#include <cassert>
#include <set>
#include <sstream>

#include "calibration/kernels/gpu_sheets.hpp"
#include "common/embedded.hpp"
#include "kernel/gan_step.hpp"
#include "kernel/models/models.hpp"
#include "platforms/catalog.hpp"
#include "studies/validation.hpp"
#include "traces/recipe.hpp"
#include "traces/recorded.hpp"

namespace ganymede::cli {
namespace {

constexpr std::string_view kPrefix = "suggest:";

std::vector<std::string> names_of(const std::string& topic) {
  if (topic == "rented-gpus") {
    std::set<std::string> names;
    for (const std::string& provider : platforms::provider_names())
      for (const platforms::Gpu& gpu : platforms::catalog(provider).gpus) names.insert({gpu.name, gpu.family});
    return {names.begin(), names.end()};
  }
  if (topic == "sheets") {
    std::vector<std::string> names;
    for (const calibration::GpuSheet& gpu : calibration::gpu_sheets()) names.push_back(gpu.name);
    return names;
  }
  if (topic == "planned") return planned_models();
  if (topic == "recipes") return traces::recipe_names();  // `list recipes` resolves each, in a quarter of a second
  if (topic == "models") {  // to train: `list models` has those that can only be planned with too
    std::vector<std::string> names;
    for (const auto& model : kernel::models()) names.emplace_back(model.name);
    return names;
  }
  if (topic == "studies") return studies::validation_names();
  if (topic == "losses") return {std::begin(kernel::kLossNames), std::end(kernel::kLossNames)};
  if (topic == "layers") return ganymede::names_of(embedded_layers());
  auto topics = listed_topics();
  if (topic == "topics") return topics;
  assert(std::find(topics.begin(), topics.end(), topic) != topics.end());
  return listed_names(topic);
}

}  // namespace

std::vector<std::string> planned_models() {
  std::vector<std::string> models = traces::recorded_models();
  for (const std::string& list : ganymede::names_of(embedded_layers())) models.push_back(list);
  return models;
}

Check suggest(const std::string& spec) {
  return {[](std::string&) { return std::string{}; }, "", std::string(kPrefix) + spec};
}

Suggestion read_suggestion(const std::string& validator_name) {
  Suggestion suggestion;
  if (!validator_name.starts_with(kPrefix)) return suggestion;
  suggestion.any = true;
  std::istringstream words(validator_name.substr(kPrefix.size()));
  for (std::string word; words >> word;) {
    if (word == "@files") {
      suggestion.files = true;
    } else if (word == "@list") {
      suggestion.list = true;
    } else if (word.starts_with('@')) {
      const auto names = names_of(word.substr(1));
      suggestion.names.insert(suggestion.names.end(), names.begin(), names.end());
    } else {
      suggestion.names.push_back(word);
    }
  }
  return suggestion;
}

}  // namespace ganymede::cli
