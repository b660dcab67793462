#include "cli/plan_like.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "cli/progress.hpp"
#include "cli/shared_options.hpp"
#include "common/dates.hpp"
#include "common/errors.hpp"
#include "common/json.hpp"
#include "common/json_value.hpp"
#include "platforms/catalog.hpp"
#include "studies/task_offers.hpp"

namespace ganymede::cli {

report::Compared best_of(const RequestFlags& flags, const char* command, const std::string& name,
                         const std::vector<JsonOverride>& more, const plan::PlanOptions& search,
                         const std::function<void(plan::Request&)>& narrow) {
  plan::Request request = flags.members.locate(
      [&] { return plan::read_request(request_of(flags, command, more), format_time(stated_now())); });
  if (narrow) narrow(request);
  const plan::Plan plan = plan::make_plan(request, search);
  std::optional<std::size_t> best = plan.best;
  if (!best && !plan.near_misses.empty()) best = plan.near_misses.front();
  if (best) return {name, plan::row_of(request, plan, *best), ""};
  std::string why = "nothing that was searched can run it";
  for (const std::string& reason : plan.candidates.left_out) why += "; " + reason;
  return {name, {}, why};
}

namespace {

std::vector<JsonOverride> search_of(const report::LikeAnswer& answer, const studies::AskedResources& asked,
                                    const RequestFlags& flags) {
  const auto list = [](const std::vector<std::string>& names) { return Json(names).dump(); };
  const std::string gpus = std::to_string(answer.nodes * answer.gpus_per_node);
  std::vector<JsonOverride> out = {{"/search/min_gpus", gpus}, {"/search/max_gpus", gpus}};
  if (!asked.instance.empty())
    out.push_back({"/search/instances", list({asked.instance})});
  else if (!flags.members.has("/search/gpus") && !answer.gpu.empty())
    out.push_back({"/search/gpus", list(studies::gpus_meant(answer.gpu))});
  if (!asked.cloud.empty()) out.push_back({"/search/catalogs", list({asked.cloud})});
  if (!asked.region.empty()) out.push_back({"/search/regions", list({asked.region})});
  out.push_back({"/search/markets", list({asked.spot ? "spot" : "on-demand"})});
  return out;
}

/// Leaves instance types of which the GPUs that are asked for take as many nodes as are asked for; false if none does.
bool keep_shape(const report::LikeAnswer& answer, plan::Request& request) {
  const int gpus = answer.nodes * answer.gpus_per_node;
  const std::vector<std::string> meant = studies::gpus_meant(answer.gpu);
  std::vector<std::string> fitting;
  bool has_gpu = false;
  for (const auto& entry : request.catalogs)
    for (const platforms::Instance& of : entry.platform->instances)
      if (of.gpus >= answer.gpus_per_node && (gpus + of.gpus - 1) / of.gpus == answer.nodes &&
          (request.instances.empty() || std::ranges::find(request.instances, of.name) != request.instances.end())) {
        fitting.push_back(of.name);
        has_gpu = has_gpu || meant.empty() || std::ranges::find(meant, of.gpu) != meant.end();
      }
  if (fitting.empty()) fitting.emplace_back();  // no type has this name: an empty list would be any
  request.instances = std::move(fitting);
  return has_gpu;
}

}  // namespace

void run_like(const std::string& file, const RequestFlags& flags, Shared& shared) {
  keep_input(shared, file);
  const studies::AskedResources asked = studies::read_task_file(file);
  std::string gpu;
  for (const auto& [pointer, value] : flags.members.overrides())
    if (pointer == "/search/gpus") gpu = Json::parse(value)[0].get<std::string>();
  const report::LikeAnswer answer = studies::task_offers(asked, gpu);
  const std::size_t width = result_width(shared);
  const bool trains = !flags.file.empty() || flags.members.has("/workload/model") ||
                      flags.members.has("/workload/trace") || flags.members.has("/workload/recipe");
  if (!trains)
    return emit(shared, shared.format == "json"  ? report::like_json(answer)
                        : shared.format == "csv" ? report::like_csv(answer)
                                                 : report::like_text(answer, today(), width));
  if (!asked.cloud.empty() && !platforms::is_provider(asked.cloud))
    throw ConfigError(file + ": " + asked.cloud + " has no catalog: `ganymede list providers` names those there are");
  plan::PlanOptions search;
  search.jobs = jobs(shared);
  auto waiting = show_elapsed(shared, "comparing");
  bool has_shape = true;
  std::vector<report::Compared> rows = {
      best_of(flags, "plan", "as it asks", search_of(answer, asked, flags), search,
              [&](plan::Request& request) { has_shape = keep_shape(answer, request); }),
      best_of(flags, "plan", "anything", {}, search)};
  waiting.reset();
  if (!has_shape && !rows.front().row)
    rows.front().reason =
        fmt::format("no instance type that is searched makes {} x {} such GPUs", answer.nodes, answer.gpus_per_node);
  emit(shared, shared.format == "json" ? report::compared_json(rows)
               : shared.format == "csv"
                   ? report::compared_csv(rows)
                   : report::compared_text(rows, today(), width) + "\n" + report::like_text(answer, today(), width));
}

}  // namespace ganymede::cli
