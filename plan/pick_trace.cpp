#include "plan/pick_trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <vector>

#include "common/embedded.hpp"
#include "common/json.hpp"
#include "common/json_value.hpp"
#include "common/text.hpp"
#include "traces/recipe.hpp"
#include "traces/recorded.hpp"
#include "traces/step_trace.hpp"

namespace ganymede::plan {
namespace {

/// What comes with the program as a recording.
struct Recording {
  std::string at, model;
  bool gpu = false;
  std::string why;  ///< it is taken, a sentence for people
};

const std::vector<Recording>& recordings() {
  static const std::vector<Recording> all = [] {
    std::vector<Recording> rows;
    for (const std::string& name : traces::recorded_names()) {
      const std::string at = std::string(traces::kRecorded) + name;
      const traces::StepTrace trace =
          traces::read_step_trace(JsonNode::parse(traces::trace_text(JsonNode::wrap(Json(at), at, "")), at));
      rows.push_back({at, trace.model, trace.device.kind == "gpu",
                      fmt::format("{}, which comes with the program: recorded on {} with {} {}", at, trace.device.name,
                                  trace.software.name, trace.software.version)});
    }
    return rows;
  }();
  return all;
}

}  // namespace

std::string pick_trace(const JsonNode& model, std::string& why) {
  if (const std::string name = model.as_string(); traces::comes_with_program(name)) return why = name;
  const Recording* best = nullptr;
  std::set<std::string> models;
  for (const Recording& row : recordings()) {
    models.insert(row.model);
    if (row.model == model.as_string() && (best == nullptr || (row.gpu && !best->gpu))) best = &row;
  }
  if (best == nullptr) {
    for (const EmbeddedText& list : embedded_layers()) {
      models.emplace(list.name);
      if (list.name != traces::list_name(model.as_string())) continue;
      why = fmt::format("{}{}, a list of layers that comes with the program", traces::kLayers, model.as_string());
      return std::string(traces::kLayers) + model.as_string();
    }
    const std::string name = model.as_string();
    const std::vector<std::string> names(models.begin(), models.end()), recipes = traces::recipe_names();
    if (traces::is_recipe_file(name))
      model.fail(
          fmt::format("\"{}\" is a file, expected it as \"trace\" (--trace) if it is a step trace, as "
                      "\"recipe\" (--recipe) if it is a recipe",
                      name));
    const std::string base = name.substr(0, name.find_first_of("/?"));
    if (std::find(recipes.begin(), recipes.end(), base) != recipes.end())
      model.fail(fmt::format("\"{}\" is a recipe, expected \"recipe\" (--recipe) in place of the model", name));
    const std::string meant = did_you_mean(name, names);
    model.fail(fmt::format(
        "no trace of \"{}\" comes with the program, it has {}; `ganymede calibrate` records one for \"trace\", "
        "`ganymede list recipes` names trainings for \"recipe\"{}",
        name, list_of(names), meant.empty() ? did_you_mean(name, recipes) : meant));
  }
  why = best->why;
  return best->at;
}

}  // namespace ganymede::plan
