#include "plan/candidate_scenarios.hpp"

#include <fmt/format.h>

#include "common/json_value.hpp"
#include "common/units.hpp"
#include "plan/checks.hpp"
#include "plan/evaluate.hpp"
#include "plan/what_if.hpp"
#include "sim/collectives/allreduce.hpp"

namespace ganymede::plan {
namespace {

/// The storage for checkpoints if the request names none: an object store, else the first storage.
std::string checkpoint_place(const platforms::Platform& platform) {
  for (const platforms::Storage& storage : platform.storage)
    if (storage.object_store) return storage.name;
  return platform.storage.front().name;
}

}  // namespace

void CandidateScenarios::add(sim::ScenarioParts& parts, const std::string& key, const std::string& variant,
                             const std::function<Json()>& content) {
  auto known = known_.find(key + " " + variant);
  if (known == known_.end()) {
    const JsonNode node = JsonNode::wrap(Json{{key, content()}}, request_.file, "").child(key);
    known = known_.emplace(key + " " + variant, node).first;
  }
  parts.sections.insert_or_assign(key, known->second);
}

sim::ScenarioParts CandidateScenarios::parts(const PlanCandidate& candidate) {
  const Json& common = request_.common;
  const Request::Catalog& catalog = request_.catalogs[candidate.catalog];
  sim::ScenarioParts parts{request_.file, {}, request_.regions, {}, request_.seed};
  const auto rent = [&](platforms::Market market, int nodes, const char* name) {
    parts.nodes.push_back({catalog.name,
                           catalog.hash,
                           catalog.platform,
                           {candidate.instance->name, candidate.region, market, nodes, candidate.gpus_per_node},
                           name});
  };
  // What is drawn for a pool depends on its name. The same names give all candidates the same luck.
  rent(candidate.market, candidate.nodes - candidate.on_demand_nodes,
       candidate.market == platforms::Market::spot ? "spot" : "");
  if (candidate.on_demand_nodes > 0) rent(platforms::Market::on_demand, candidate.on_demand_nodes, "on-demand");

  for (const auto& [key, value] : common.items())
    if (key != "schema") add(parts, key, "", [&content = value] { return content; });
  add(parts, "workload", std::to_string(candidate.batch), [&] {
    Json workload = common["workload"];
    const Request::Batch& batch = request_.batches[candidate.batch];
    workload["batch_per_gpu"] = batch.per_gpu;
    if (batch.passes > 1 || workload.contains("accumulation_steps")) workload["accumulation_steps"] = batch.passes;
    return workload;
  });
  add(parts, "synchronization", candidate.scheme, [&] {
    Json synchronization = common.value("synchronization", Json::object());
    synchronization["scheme"] = candidate.scheme == "none" ? request_.schemes.front() : candidate.scheme;
    // Other schemes do not care how large single variables are.
    if (!sim::parse_scheme(synchronization["scheme"].get<std::string>()).row->has_servers)
      synchronization.erase("variables");
    return synchronization;
  });
  add(parts, "policy", candidate.policy->content.dump(), [&] { return candidate.policy->content; });
  if (!candidate.checkpoint.empty()) {
    add(parts, "checkpoint", candidate.checkpoint, [&] {
      return Json{{"every", candidate.checkpoint}, {"on_notice", request_.on_notice.value_or(false)}};
    });
    if (!common.contains("storage") || !common["storage"].contains("checkpoint")) {
      const std::string place = checkpoint_place(*catalog.platform);
      add(parts, "storage", place, [&] {
        Json storage = common.value("storage", Json::object());
        storage["checkpoint"] = place;
        return storage;
      });
    }
  }
  if (request_.checks) {
    const std::string every = fmt::format("{} images", check_interval_of(request_, candidate));
    add(parts, "evaluation", every, [&] {
      Json evaluation = common["evaluation"];
      evaluation["every"] = every;
      return evaluation;
    });
  }
  if (request_.deadline) add(parts, "deadline", "", [&] { return Json(fmt::format("{}s", request_.deadline->si)); });
  if (request_.budget) add(parts, "budget", "", [&] { return Json(decimal(*request_.budget) + "USD"); });
  return parts;
}

sim::Scenario CandidateScenarios::scenario(const PlanCandidate& candidate) {
  sim::Scenario scenario = sim::make_scenario(parts(candidate), request_.caches->inputs);
  apply_what_if(request_, scenario);
  return scenario;
}

}  // namespace ganymede::plan
