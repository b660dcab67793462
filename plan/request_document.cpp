#include <algorithm>

#include "common/file.hpp"
#include "plan/request.hpp"
#include "platforms/catalog.hpp"
#include "traces/recipe.hpp"
#include "traces/recorded.hpp"

namespace ganymede::plan {

std::string path_from(const std::filesystem::path& folder, const std::string& path) {
  // The system follows a link before "..", so that the folders are compared without links.
  const std::filesystem::path file = std::filesystem::absolute(path);
  return (written_path(file.parent_path()) / file.filename())
      .lexically_proximate(written_path(folder))
      .generic_string();
}

std::string trace_from(const std::filesystem::path& folder, const std::string& trace) {
  if (!trace.starts_with(traces::kRecipe)) return traces::comes_with_program(trace) ? trace : path_from(folder, trace);
  const std::string recipe = trace.substr(traces::kRecipe.size());
  return traces::is_recipe_file(recipe) ? std::string(traces::kRecipe) + path_from(folder, recipe) : trace;
}

namespace {

using DocumentJson = Json;

DocumentJson policies_of(const Request& request, const std::filesystem::path& folder) {
  DocumentJson out = DocumentJson::array();
  for (const RequestPolicy& one : request.spot_policies) {
    out.push_back(one.content);
    if (one.content.contains("table")) out.back()["table"] = path_from(folder, one.content["table"]);
  }
  return out;
}

bool saves_nothing(const Request& request) { return request.checkpoints == std::vector<std::string>{""}; }

DocumentJson search_of(const Request& request, const std::filesystem::path& folder) {
  DocumentJson search = {{"min_gpus", request.min_gpus},
                         {"max_gpus", request.max_gpus},
                         {"schemes", request.schemes},
                         {"policies", policies_of(request, folder)},
                         {"mixed", !request.mixed_policies.empty()},
                         {"max_price_age", std::to_string(request.price_age.most_days) + "d"},
                         {"certainty", request.certainty},
                         {"sure", request.sure}};
  for (const Request::Catalog& entry : request.catalogs)
    search["catalogs"].push_back(platforms::is_provider(entry.name) ? entry.name : path_from(folder, entry.name));
  if (!saves_nothing(request)) search["checkpoints"] = request.checkpoints;
  for (const platforms::Market market : request.markets) search["markets"].push_back(platforms::to_string(market));
  for (const auto& [key, names] :
       {std::pair{"gpus", &request.gpus}, {"instances", &request.instances}, {"regions", &request.regions}})
    if (!names->empty()) search[key] = *names;
  // Otherwise these are the defaults, which no single number states.
  if (request.seeds == request.seeds_at_risk) search["seeds"] = request.seeds;
  if (!request.price_age.today.empty()) search["today"] = request.price_age.today;
  return search;
}

}  // namespace

Json request_document(const Request& request, const std::filesystem::path& folder) {
  DocumentJson out = request.common;
  out["schema"] = "ganymede.request/1";
  DocumentJson& trace = out["workload"]["trace"];
  const std::string name = trace_from(folder, trace.get<std::string>());
  trace = name;
  if (auto& workload = out["workload"]; workload.contains("quality") && workload["quality"].contains("curve"))
    workload["quality"]["curve"] = path_from(folder, workload["quality"]["curve"].get<std::string>());
  if (!request.batches.front().gpus.empty()) {  // the recipe's own, which follow from its name
    out["workload"]["recipe"] = name.substr(traces::kRecipe.size());
    out["workload"].erase("trace");
  } else {
    for (const Request::Batch& batch : request.batches) out["workload"]["batch_per_gpu"].push_back(batch.per_gpu);
  }
  if (request.deadline) out["deadline"] = request.deadline_text;
  if (!request.start.empty()) out["start"] = request.start;
  if (request.budget) out["budget"] = decimal(*request.budget) + "USD";
  out["objective"] = to_string(request.objective);
  if (request.on_notice) out["checkpoint"]["on_notice"] = *request.on_notice;
  if (saves_nothing(request)) out["checkpoint"]["every"] = "never";
  out["search"] = search_of(request, folder);
  out["seed"] = request.seed;
  return out;
}

void prefer_files(Request& request) {
  for (const auto& file : request.catalogs) {
    if (platforms::is_provider(file.name)) continue;
    for (auto& own : request.catalogs) {
      if (!platforms::is_provider(own.name) || own.platform->provider != file.platform->provider) continue;
      platforms::Platform rest = *own.platform;
      std::erase_if(rest.instances, [&](const platforms::Instance& instance) {
        return std::any_of(file.platform->instances.begin(), file.platform->instances.end(),
                           [&](const platforms::Instance& other) { return other.name == instance.name; });
      });
      own.platform = std::make_shared<const platforms::Platform>(std::move(rest));
    }
  }
}

}  // namespace ganymede::plan
