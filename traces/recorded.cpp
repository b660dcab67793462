#include "traces/recorded.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <sstream>

#include "common/embedded.hpp"
#include "common/errors.hpp"
#include "common/file.hpp"
#include "common/json.hpp"
#include "common/text.hpp"
#include "common/units.hpp"
#include "common/written.hpp"
#include "traces/layer_list.hpp"
#include "traces/recipe.hpp"
#include "traces/step_trace.hpp"

namespace ganymede::traces {

const std::vector<std::string>& recorded_names() {
  static const std::vector<std::string> names = names_of(embedded_traces());
  return names;
}

const std::vector<std::string>& recorded_models() {
  static const std::vector<std::string> models = [] {
    std::vector<std::string> found;
    for (const EmbeddedText& trace : embedded_traces())
      found.push_back(JsonNode::parse(trace.text, std::string(trace.name)).child("model").as_string());
    return found;
  }();
  return models;
}

namespace {

/// For a file that is not there: the trace that comes with the program and has this name.
std::string what_was_meant(const std::string& name) {
  for (const auto& [prefix, names] : {std::pair(kRecorded, recorded_names()), {kLayers, names_of(embedded_layers())}})
    if (std::find(names.begin(), names.end(), name) != names.end())
      return fmt::format("did you mean \"{}{}\", which comes with the program?", prefix, name);
  return "`ganymede train --trace FILE` records one";
}

/// The text after the name of a list, behind a colon or a question mark.
struct ListOptions {
  std::optional<std::string> precision;
  std::optional<int> image;
};

ListOptions list_options(const std::string& name) {
  ListOptions options;
  const auto set_precision = [&](const std::string& text) {
    const std::vector<std::string> precisions = {"fp32", "tf32", "bf16", "fp16"};
    if (std::find(precisions.begin(), precisions.end(), text) == precisions.end())
      throw ConfigError(fmt::format("{}: found the precision \"{}\", expected {}", name, text, list_of(precisions)));
    options.precision = text;
  };
  const std::size_t question = name.find('?');
  if (const std::size_t colon = name.find(':'); colon < question)
    set_precision(name.substr(colon + 1, question == std::string::npos ? question : question - colon - 1));
  if (question == std::string::npos) return options;
  std::istringstream parts(name.substr(question + 1));
  for (std::string part; std::getline(parts, part, '&');) {
    const std::size_t sign = std::min(part.find('='), part.size());
    const std::string key = part.substr(0, sign), value = part.substr(std::min(sign + 1, part.size()));
    if (key == "precision") {
      set_precision(value);
    } else if (key == "image") {
      const auto side = parse_count(value);
      if (!side || *side < 1 || *side > 65536)
        throw ConfigError(fmt::format("{}: found the image \"{}\", expected its side, such as 256", name, value));
      options.image = static_cast<int>(*side);
    } else {
      throw ConfigError(
          fmt::format("{}: found \"{}\", expected image=256 or precision=fp16 behind the \"?\"", name, part));
    }
  }
  return options;
}

/// The trace of a list of layers. Its times follow from the V100's data sheet; the choice hardly
/// matters, because they are computed again for any other GPU.
StepTrace layers_trace(const LayerList& list, std::set<int> batches = {}) {
  const double rate = list.precision == "fp32" ? 15.7e12 : 125e12;
  const RooflineDevice v100{"V100", FlopsPerSecond{rate}, BytesPerSecond{900e9}, Seconds{3.8e-6}, Bytes{16e9}};
  for (int batch = 1; batch <= 256; batch *= 2) batches.insert(batch);
  return trace_of(list, {batches.begin(), batches.end()}, v100);
}

}  // namespace

StepTrace recipe_trace(const std::string& name) {
  const Recipe recipe = resolve_recipe(name);
  std::set<int> batches;
  for (int batch = 1; batch <= std::min(recipe.training.batch, 512); ++batch)
    if (recipe.training.batch % batch == 0) batches.insert(batch);
  if (recipe.training.batch_per_gpu > 0) batches.insert(recipe.training.batch_per_gpu);
  StepTrace trace = layers_trace(recipe.layers, std::move(batches));
  trace.software.name = kRecipeSoftware, trace.software.version = name;
  if (recipe.training.gradients == "data-parallel") trace.host = "serial";
  return trace;
}

std::string list_name(const std::string& name) { return name.substr(0, name.find_first_of(":?")); }

LayerList built_in_list(const std::string& name) {
  const std::string wanted = list_name(name);
  const ListOptions options = list_options(name);
  const auto known = names_of(embedded_layers());
  for (const EmbeddedText& text : embedded_layers()) {
    if (text.name != wanted) continue;
    LayerList list = read_layer_list(JsonNode::parse(text.text, wanted + ".json"), options.image);
    if (options.precision) list.precision = *options.precision;
    return list;
  }
  throw ConfigError(fmt::format("no list of layers \"{}\" comes with the program, expected {}{}", wanted,
                                list_of(known), did_you_mean(wanted, known)));
}

LayerList load_layer_list(const std::string& given) {
  const std::string name = given.starts_with(kLayers) ? given.substr(kLayers.size()) : given;
  const auto known = names_of(embedded_layers());
  if (std::find(known.begin(), known.end(), list_name(name)) != known.end()) return built_in_list(name);
  const bool path = name.find('/') != std::string::npos || name.ends_with(".json");
  if (path) return read_layer_list(JsonNode::load(name));
  throw ConfigError(fmt::format("no list of layers \"{}\" comes with the program, expected {} or a file (.json){}",
                                name, list_of(known), did_you_mean(name, known)));
}

bool comes_with_program(std::string_view name) {
  return name.starts_with(kRecorded) || name.starts_with(kLayers) || name.starts_with(kRecipe);
}

std::string trace_name(const JsonNode& at) {
  const std::string name = at.as_string();
  if (name.starts_with(kRecipe)) return std::string(kRecipe) + recipe_from(name.substr(kRecipe.size()), at.directory());
  return comes_with_program(name) ? name : (at.directory() / name).string();
}

std::string trace_text(const JsonNode& at) {
  const std::string name = at.as_string();
  if (name.starts_with(kLayers) || name.starts_with(kRecipe)) {
    try {
      return write_step_trace(name.starts_with(kLayers) ? layers_trace(built_in_list(name.substr(kLayers.size())))
                                                        : recipe_trace(trace_name(at).substr(kRecipe.size())));
    } catch (const ConfigError& error) {
      at.fail(error.what());
    }
  }
  if (!name.starts_with(kRecorded)) {
    try {
      return read_file(trace_name(at));
    } catch (const ConfigError& error) {
      at.fail(fmt::format("{}; {}", error.what(), what_was_meant(name)));
    }
  }
  const std::string_view wanted = std::string_view(name).substr(kRecorded.size());
  for (const EmbeddedText& trace : embedded_traces())
    if (trace.name == wanted) return std::string(trace.text);
  at.fail(fmt::format("no trace \"{}\" comes with the program, expected {}{}", wanted, list_of(recorded_names()),
                      did_you_mean(wanted, recorded_names())));
}

}  // namespace ganymede::traces
