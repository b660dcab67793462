#include "plan/chosen_scenario.hpp"

#include <string>

#include "common/json.hpp"
#include "common/json_value.hpp"

namespace ganymede::plan {

sim::Scenario load_scenario_or_plan(const std::filesystem::path& file, const std::vector<JsonOverride>& overrides) {
  const std::string chosen = "/chosen/scenario";
  const JsonNode root = JsonNode::load(file);
  if (!root.is_object() || root.value().value("schema", Json()) != "ganymede.plan/1")
    return sim::load_scenario(file, overrides);
  if (!root.value().contains(JsonPointer(chosen)))
    root.fail("the plan has chosen nothing: no candidate meets its goals");
  std::vector<JsonOverride> in_plan;
  for (const JsonOverride& given : overrides) in_plan.push_back({chosen + given.pointer, given.value});
  return sim::read_scenario(JsonNode::load(file, in_plan).child("chosen").child("scenario"));
}

}  // namespace ganymede::plan
