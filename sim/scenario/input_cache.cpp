#include "sim/scenario/input_cache.hpp"

#include "calibration/stated_step.hpp"
#include "common/file.hpp"
#include "common/json.hpp"
#include "common/json_value.hpp"
#include "common/random.hpp"
#include "traces/recorded.hpp"

namespace ganymede::sim {

ScenarioInputCache::KnownTrace ScenarioInputCache::trace(const JsonNode& at, const JsonNode* measured) {
  if (measured) {
    const KnownTrace model = trace(at);
    const std::pair key(traces::trace_name(at) + " " + measured->value().dump(), model.hash);
    const auto known = traces_.find(key);
    if (known != traces_.end()) return {known->second, model.hash};
    traces::StepTrace stated =
        calibration::with_stated_step(*model.trace, calibration::read_stated_step(*measured), *measured);
    return {traces_.emplace(key, std::make_shared<const traces::StepTrace>(std::move(stated))).first->second,
            model.hash};
  }
  const std::string name = traces::trace_name(at);
  // A file of the program stays as it is: it is made and hashed once.
  const bool built_in = traces::comes_with_program(name);
  if (const auto hash = hashes_.find(name); built_in && hash != hashes_.end())
    return {traces_.at({name, hash->second}), hash->second};
  const std::string text = traces::trace_text(at);
  const std::uint64_t hash = built_in ? embedded_hash(name, text) : fnv1a(text);
  const auto known = traces_.find({name, hash});
  if (known != traces_.end()) return {known->second, hash};
  auto trace = std::make_shared<const traces::StepTrace>(traces::read_step_trace(JsonNode::parse(text, name)));
  return {traces_.emplace(std::pair{name, hash}, std::move(trace)).first->second, hash};
}

ScenarioInputCache::KnownGoal ScenarioInputCache::quality(const JsonNode& at, const std::string& model) {
  std::uint64_t hash = 0;
  if (at.value().contains("curve")) {
    const JsonNode curve = at.child("curve");
    hash = fnv1a(read_file(curve.directory() / curve.as_string()));
  }
  const std::string key = at.value().dump() + " " + model + " " + std::to_string(hash);
  const auto known = goals_.find(key);
  if (known != goals_.end()) return {known->second, hash};
  return {goals_.emplace(key, calibration::QualityGoal::read(at, model)).first->second, hash};
}

std::uint64_t ScenarioInputCache::embedded_hash(const std::string& name, std::string_view text) {
  const auto [place, is_new] = hashes_.try_emplace(name, 0);
  if (is_new) place->second = fnv1a(text);
  return place->second;
}

}  // namespace ganymede::sim
