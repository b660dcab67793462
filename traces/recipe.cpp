#include "traces/recipe.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>
#include <sstream>

#include "common/embedded.hpp"
#include "common/errors.hpp"
#include "common/json.hpp"
#include "common/json_value.hpp"
#include "common/text.hpp"
#include "common/written.hpp"
#include "documents/forms.hpp"

namespace ganymede::traces {
namespace {

/// What a moving average of the weights adds to an update, of what the optimizer moves: three reads and two writes of
/// each parameter (lerp, copy), beside eager Adam's 18 (layer_trace.cpp).
constexpr double kAverage = 5.0 / 18;

/// The parts of "NAME/CONFIG?key=value&...".
struct Given {
  std::string text, name, config;
  bool is_file = false;
  std::vector<std::pair<std::string, std::string>> options;

  [[noreturn]] void fail(const std::string& why) const { throw ConfigError(fmt::format("recipe {}: {}", text, why)); }
  [[noreturn]] void unknown(const std::string& what, const std::string& found, std::vector<std::string> known) const {
    std::sort(known.begin(), known.end());
    fail(fmt::format("found the {} \"{}\", expected {}{}{}", what, found, list_of(known),
                     what == "recipe" ? ", or a file (.json)" : "", did_you_mean(found, known)));
  }
  /// The value of an option, a whole number of at least `low`.
  std::optional<std::int64_t> number(const std::string& key, std::int64_t low = 1) const {
    for (const auto& [name_of, value] : options) {
      if (name_of != key) continue;
      const auto count = parse_count(value);
      const bool is_zero = value == "0" && low == 0;
      if (!is_zero && (!count || *count < low || *count > (1 << 24)))
        fail(fmt::format("{}: found \"{}\", expected a whole number from {} to 16777216", key, value, low));
      return is_zero ? 0 : *count;
    }
    return {};
  }
};

Given parse(const std::string& text) {
  Given given{text, text, {}, false, {}};
  const std::size_t question = text.find('?');
  given.name = text.substr(0, question);
  const std::size_t extension = given.name.find(".json");
  given.is_file = extension != std::string::npos;
  const std::size_t slash = given.name.find('/', given.is_file ? extension : 0);
  if (slash != std::string::npos) given.config = given.name.substr(slash + 1), given.name.resize(slash);
  if (question == std::string::npos) return given;
  std::istringstream parts(text.substr(question + 1));
  for (std::string part; std::getline(parts, part, '&');) {
    const std::size_t sign = part.find('=');
    if (sign == std::string::npos || sign + 1 == part.size())
      given.fail(fmt::format("found \"{}\" behind the \"?\", expected such as image=256", part));
    const std::string key = part.substr(0, sign);
    for (const auto& [before, value] : given.options)
      if (before == key) given.fail(fmt::format("found \"{}\" twice", key));
    given.options.emplace_back(key, part.substr(sign + 1));
  }
  return given;
}

JsonNode content_of(const Given& given, const std::filesystem::path& directory) {
  if (given.is_file) return JsonNode::load(directory / given.name);
  for (const EmbeddedText& text : embedded_recipes())
    if (text.name == given.name) return JsonNode::parse(text.text, given.name + ".json");
  given.unknown("recipe", given.name, recipe_names());
}

/// The layers of a recipe: its own, or those of a list that comes with the program, with its name and what its training
/// states.
JsonNode layers_of(const Given& given, const JsonNode& root, const Recipe& recipe, const std::string& precision) {
  const JsonNode own = root.child("layers");
  if (!own.is_object()) own.expected("an object");
  if (own.value().contains("step"))
    for (const JsonNode& node : own.child("step").as_array()) {
      JsonObject pass(node);
      for (const char* member : {"network", "pass"}) (void)pass.required(member).as_string();
      if (const auto times = pass.optional("times")) (void)times->as_number(1e-6, 1e6);
    }
  Json content = own.value();
  if (content.contains("list")) {
    JsonObject in(own);
    const std::string name = in.required("list").as_choice(names_of(embedded_layers()));
    const auto step = in.optional("step");  // other passes of its networks
    in.finish();
    for (const EmbeddedText& text : embedded_layers())
      if (text.name == name) content = Json::parse(text.text, /*comments=*/true);
    if (step) content["step"] = step->value();
  }
  content["schema"] = "ganymede.layers/1";
  content["name"] = recipe.document.name;
  content["precision"] = precision;
  content["optimizer"] = recipe.training.optimizer;
  const std::string file = given.is_file ? root.file() : given.name + ".json";
  return JsonNode::wrap({{"layers", std::move(content)}}, file, root.directory()).child("layers");
}

/// The training with what the configurations of that name change, in their order, for images of that side.
Json training_of(const JsonNode& root, const Recipe& recipe, const std::string& config, int image) {
  Json training = root.child("training").value();
  for (const documents::RecipeConfig& one : recipe.document.configs)
    if (one.name == config && image >= one.image_from && (one.image_to == 0 || image <= one.image_to))
      training.merge_patch(Json::parse(one.training.text));
  return training;
}

void read_training(Recipe& recipe, const JsonNode& root, Json content) {
  const JsonNode node = JsonNode::wrap({{"training", std::move(content)}}, root.file(), root.directory());
  recipe.training = {};
  documents::read(node.child("training"), documents::described(recipe.training));
  recipe.settings.clear();
  if (recipe.training.settings.text.empty()) return;
  for (const auto& [name, value] : node.child("training").child("settings").as_map())
    recipe.settings[name] = value.as_integer(0, 1 << 24);
}

/// Adds the passes of the regularizers before those of their network's part of the step, those of some steps with an
/// update of their own after the network's, and the moving average. A gradient of a gradient goes forward, back to what
/// it is taken of, and then back through both.
void add_regularizers(Json& layers, const Recipe& recipe, const JsonNode& at) {
  const auto& regularizers = recipe.training.regularizers;
  const auto fail = [&](const std::string& why) { at.child("training").child("regularizers").fail(why); };
  if (!layers.contains("step")) {
    if (!regularizers.empty()) fail("need a \"step\" in the layers, to which they are added");
    return;
  }
  std::vector<Json> step;
  std::vector<std::string> seen;
  std::size_t part = 0;  // where the part of the network whose update comes next begins
  for (Json pass : layers.at("step")) {
    const std::string network = pass.value("network", "");
    const bool first = std::find(seen.begin(), seen.end(), network) == seen.end();
    if (pass.value("pass", "") != "update" || !first) {
      step.push_back(std::move(pass));
      continue;
    }
    seen.push_back(network);
    const double times = pass.value("times", 1.0);
    if (recipe.training.moving_average && network == "generator") pass["times"] = times + kAverage;
    step.push_back(std::move(pass));
    for (const documents::RecipeRegularizer& one : regularizers) {
      if (one.network != network) continue;
      const double share = one.share / one.every;
      const auto added = [&](const char* kind, const std::string& name, double count) -> Json {
        return {{"network", network}, {"pass", kind}, {"times", count}, {"name", fmt::format("{}.{}", network, name)}};
      };
      Json forward = added("forward", one.name + "_forward", share);
      forward["differentiable"] = true, forward["images"] = one.share;
      const std::vector<Json> passes = {std::move(forward), added("backward-input", one.name + "_gradient", share),
                                        added("backward", one.name + "_backward", 2 * share)};
      step.insert(step.begin() + static_cast<std::ptrdiff_t>(part), passes.begin(), passes.end());
      if (one.every > 1) step.push_back(added("update", "update_" + one.name, times / one.every));
    }
    part = step.size();
  }
  for (const documents::RecipeRegularizer& one : regularizers)
    if (std::find(seen.begin(), seen.end(), one.network) == seen.end())
      fail(fmt::format("no step updates a network \"{}\"", one.network));
  layers["step"] = Json::array();
  for (Json& pass : step) layers["step"].push_back(std::move(pass));
}

/// Refuses more resolutions in 16 bits than the image has from 4 pixels on; not of a size that the layers do not have.
void check_half(const Given& given, const Recipe& recipe, const JsonNode& root) {
  const auto half = recipe.settings.find("fp16_resolutions");
  const std::vector<int>& sizes = recipe.sizes;
  const bool is_size = sizes.empty() || std::count(sizes.begin(), sizes.end(), recipe.training.image) > 0;
  if (half == recipe.settings.end() || !is_size) return;
  const auto most = std::max<std::int64_t>(0, std::llround(std::floor(std::log2(recipe.training.image))) - 1);
  if (half->second > most)
    throw ConfigError(
        fmt::format("{}: /training/settings/fp16_resolutions: found {}, expected at most {}: an image of "
                    "{} has the resolutions from 4 to {}",
                    given.is_file ? root.file() : "recipe " + given.text, half->second, most, recipe.training.image,
                    recipe.training.image));
}

/// The configuration that is asked for; the first if none is.
std::string config_of(const Given& given, const Recipe& recipe) {
  std::vector<std::string> known;
  for (const documents::RecipeConfig& one : recipe.document.configs)
    if (std::find(known.begin(), known.end(), one.name) == known.end()) known.push_back(one.name);
  if (given.config.empty()) return known.empty() ? "" : known.front();
  if (known.empty()) given.fail(fmt::format("found the configuration \"{}\", but it has none", given.config));
  if (std::find(known.begin(), known.end(), given.config) == known.end())
    given.unknown("configuration", given.config, known);
  return given.config;
}

}  // namespace

int Recipe::batch_for(int workers) const {
  if (!training.batch_rule || training.batch > 0) return training.batch;
  const documents::RecipeBatchRule& rule = *training.batch_rule;
  const int by = gpus > 0 ? gpus : workers, side = std::max(1, training.image);
  return std::max(std::min(by * std::min(std::max(1, rule.side / side), rule.per_gpu), rule.most), by);
}

RecipeBatch Recipe::batch_on(int workers) const {
  const auto fail = [&](const std::string& why) {
    const std::size_t extension = name.find(".json");
    const bool in_file = extension != std::string::npos && name.find("batch", extension) == std::string::npos;
    throw ConfigError(in_file ? fmt::format("{}: /training/batch: {}", name.substr(0, extension + 5), why)
                              : fmt::format("recipe {}: batch: {}", document.name, why));
  };
  RecipeBatch split;
  split.all = batch_for(workers);
  if (split.all == 0) fail("it states none, expected batch=IMAGES behind the \"?\"");
  if (split.all % workers != 0)
    fail(fmt::format("found {} images of all GPUs, expected a multiple of {} GPUs", split.all, workers));
  const int share = split.all / workers;
  split.pass = training.batch_per_gpu == 0 ? share : std::min(share, training.batch_per_gpu);
  if (share % split.pass != 0)
    fail(fmt::format(
        "found {} images of all GPUs, expected a multiple of {}, {} x {} of a pass on each GPU, such as {}", split.all,
        workers * split.pass, workers, split.pass, (split.all / (workers * split.pass) + 1) * workers * split.pass));
  split.passes = share / split.pass;
  return split;
}

std::int64_t Recipe::images(int batch, std::int64_t dataset_images) const {
  if (training.kimg > 0) return std::llround(training.kimg * 1000);
  if (training.steps > 0) return training.steps * batch;
  return training.epochs * dataset_images;
}

std::vector<std::string> recipe_names() { return names_of(embedded_recipes()); }

documents::Recipe built_in_recipe(const std::string& name) {
  const Given given = parse(name);
  return documents::read_recipe(content_of(given, {}));
}

std::string recipe_from(const std::string& name, const std::filesystem::path& directory) {
  return is_recipe_file(name) ? (directory / name).string() : name;
}

bool is_recipe_file(const std::string& name) { return recipe_base(name).find(".json") != std::string::npos; }

std::string recipe_base(const std::string& name) { return parse(name.substr(0, name.find('?'))).name; }

Recipe resolve_recipe(const std::string& name, const std::filesystem::path& directory) {
  const Given given = parse(name);
  const JsonNode root = content_of(given, directory);
  Recipe recipe;
  recipe.document = documents::read_recipe(root);
  recipe.name = recipe_from(name, directory);
  recipe.config = config_of(given, recipe);

  // The image decides which configurations hold, and one of them may state it.
  const JsonNode layers = layers_of(given, root, recipe, "fp32");
  const bool sized = layers.value().contains("image");
  int native = 0;
  if (sized) {
    JsonObject image(layers.child("image"));
    native = static_cast<int>(image.required("native").as_integer(1, 65536));
    for (const JsonNode& size : image.required("sizes").as_array())
      recipe.sizes.push_back(static_cast<int>(size.as_integer(1, 65536)));
  }
  const auto image = given.number("image");
  read_training(recipe, root, training_of(root, recipe, recipe.config, 0));
  const int side = image ? static_cast<int>(*image) : recipe.training.image > 0 ? recipe.training.image : native;
  read_training(recipe, root, training_of(root, recipe, recipe.config, side));
  recipe.training.image = side;

  std::vector<std::string> known = {"image", "gpus", "batch", "batch_per_gpu", "precision"};
  for (const auto& [key, value] : recipe.settings) known.push_back(key);
  for (const auto& [key, value] : given.options)
    if (std::find(known.begin(), known.end(), key) == known.end()) given.unknown("option", key, known);
  for (auto& [key, value] : recipe.settings) value = given.number(key, 0).value_or(value);
  for (const auto& [key, value] : given.options) {
    if (key != "precision") continue;
    const std::vector<std::string> precisions = {"fp32", "tf32", "bf16", "fp16"};
    if (std::find(precisions.begin(), precisions.end(), value) == precisions.end())
      given.unknown("precision", value, precisions);
    recipe.training.precision = value;
    if (const auto half = recipe.settings.find("fp16_resolutions"); half != recipe.settings.end()) half->second = 0;
  }
  check_half(given, recipe, root);
  for (const auto& [key, place] :
       {std::pair("batch", &recipe.training.batch), std::pair("batch_per_gpu", &recipe.training.batch_per_gpu),
        std::pair("gpus", &recipe.gpus)})
    if (const auto value = given.number(key)) *place = static_cast<int>(*value);
  if (recipe.gpus > 0 || recipe.training.batch > 0) (void)recipe.batch_on(std::max(1, recipe.gpus));

  Json content = layers_of(given, root, recipe, recipe.training.precision).value();
  add_regularizers(content, recipe, root);
  const JsonNode list = JsonNode::wrap({{"layers", std::move(content)}}, layers.file(), root.directory());
  try {
    recipe.layers = read_layer_list(list.child("layers"), sized ? std::optional(side) : std::nullopt, recipe.settings);
  } catch (const ConfigError& error) {
    if (given.is_file) throw;
    given.fail(error.what());
  }
  recipe.layers.flat_gradients = recipe.training.gradients == "flat";
  if (const auto generator = recipe.layers.networks.find("generator"); generator != recipe.layers.networks.end())
    generator->second.average = recipe.training.moving_average;
  recipe.settings["image"] = side;
  return recipe;
}

bool reduces_flat(const TraceSoftware& software) {
  if (software.name != kRecipeSoftware) return false;
  // A plan asks the same for each of its candidates.
  static std::mutex mutex;
  static std::map<std::string, bool> known;
  const std::lock_guard lock(mutex);
  const auto [place, is_new] = known.try_emplace(software.version);
  if (is_new) place->second = resolve_recipe(software.version).layers.flat_gradients;
  return place->second;
}

}  // namespace ganymede::traces
