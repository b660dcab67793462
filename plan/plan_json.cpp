#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "calibration/workload_model.hpp"
#include "common/json_value.hpp"
#include "common/units.hpp"
#include "common/usd.hpp"
#include "plan/candidate_scenarios.hpp"
#include "plan/checks.hpp"
#include "plan/evaluate.hpp"
#include "plan/planner.hpp"
#include "platforms/catalog.hpp"
#include "platforms/providers.hpp"
#include "traces/layer_list.hpp"
#include "traces/recorded.hpp"

namespace ganymede::plan {
namespace {
OrderedJson measure_json(const PlanMeasure& measure) {
  return {{"median", measure.median}, {"interval", {measure.low, measure.high}}};
}

OrderedJson or_null(const std::optional<double>& value) { return value ? OrderedJson(*value) : OrderedJson(nullptr); }

const char* name_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::meets:
      return "meets";
    case Verdict::misses:
      return "misses";
    case Verdict::too_slow:
      return "too slow";
    case Verdict::too_dear:
      return "too dear";
    case Verdict::too_rare:
      return "too rare";
    case Verdict::beaten:
      return "beaten";
    case Verdict::impossible:
      return "impossible";
  }
  return "";
}

/// The price of one node on the candidate's market, and whether it is doubtful.
OrderedJson price_json(const Request& request, const PlanCandidate& candidate, const platforms::Price& price) {
  const platforms::PriceDoubt doubt = doubt_of(request, candidate);
  OrderedJson out = {{"usd_per_hour", decimal(price.per_hour)},
                     {"usd_per_hour_number", usd_of(price.per_hour)},
                     {"as_of", price.as_of},
                     {"source", price.origin.source}};
  out["doubt"] = doubt.any() ? OrderedJson(doubt.why) : OrderedJson(nullptr);
  out["factors"] = {doubt.low, doubt.high};
  return out;
}

/// How many images the candidate's training takes to the FID, and what a point of FID less costs.
OrderedJson planned_quality_json(const Request& request, const PlanCandidate& candidate, const PlannedRun& run) {
  const double batch = batch_of(request, candidate);
  const calibration::TargetOutlook& target = request.quality->at(batch);
  const auto more = request.quality->factor_of_a_point(batch);
  OrderedJson out = {
      {"batch", batch},
      {"images", {{"median", target.images.median}, {"interval", {target.images.low, target.images.high}}}},
      {"never", 1 - target.probability},
      {"usd_per_image", run.usd_per_image},
      {"usd_per_point",
       more ? OrderedJson(run.usd_per_image * target.images.median * (*more - 1)) : OrderedJson(nullptr)}};
  if (request.checks) {
    const auto every = static_cast<double>(check_interval_of(request, candidate));
    const double count = std::ceil(target.images.median / every);
    out["checks"] = {{"every_images", every},
                     {"pause_s", request.checks->pause(candidate.gpus()).si},
                     {"count", count},
                     {"images_beyond", every / 2}};
  }
  return out;
}

}  // namespace

OrderedJson row_json(const Request& request, const Plan& plan, std::size_t i) {
  const PlanCandidate& candidate = plan.candidates.all[i];
  const PlannedRun& run = plan.runs[i];
  const platforms::Platform& platform = *request.catalogs[candidate.catalog].platform;
  const platforms::Price& price = *platforms::find_price(*candidate.instance, candidate.region, candidate.market);
  OrderedJson out = {
      {"provider", platform.name},
      {"region", candidate.region},
      {"market", platforms::to_string(candidate.market)},
      {"instance", candidate.instance->name},
      {"nodes", candidate.nodes},
      {"on_demand_nodes",
       candidate.market == platforms::Market::on_demand ? candidate.nodes : candidate.on_demand_nodes},
      {"gpus_per_node", candidate.gpus_per_node},
      {"part_of_instance", candidate.part_of_instance()},
      {"gpu", candidate.instance->gpu},
      {"gpus", candidate.gpus()},
      {"batch_per_gpu", request.batches[candidate.batch].per_gpu},
      {"scheme", candidate.scheme},
      {"policy", candidate.policy->name()},
      {"checkpoint", candidate.checkpoint.empty() ? OrderedJson(nullptr) : OrderedJson(candidate.checkpoint)},
      {"usd_per_hour", decimal(price_of(candidate))},
      {"usd_per_hour_number", usd_of(price_of(candidate))},
      {"prices_as_of", price.as_of},
      {"price", price_json(request, candidate, price)},
      {"verdict", name_of(run.verdict)},
      {"bounds", {{"time_s", candidate.bounds.time_s}, {"usd", candidate.bounds.usd}}}};
  const std::string owned = platforms::owning_assumes(
      platform, *candidate.instance, *platforms::find_price(*candidate.instance, candidate.region, candidate.market));
  if (!owned.empty()) out["owned"] = owned;
  if (!run.reason.empty()) out["reason"] = run.reason;
  if (!run.simulated()) return out;
  out["time_s"] = measure_json(run.time_s);
  out["usd"] = measure_json(run.usd);
  out["usd"]["at_worst_prices"] = run.usd_at_worst;
  out["usd"]["expected"] = or_null(run.usd_expected);
  out["usd"]["worst_tenth"] = or_null(run.usd_worst_tenth);
  out["kg_co2e"] = run.carbon_known ? measure_json(run.kg_co2e) : OrderedJson(nullptr);
  if (request.quality) out["quality"] = planned_quality_json(request, candidate, run);
  out["gpu_busy"] = run.gpu_busy;
  out["images_per_s"] = run.images_per_s;
  out["losses_mean"] = run.losses;
  out["met_share"] = run.met_share;
  out["probability"] = run.probability;
  out["seeds"] = run.seeds;
  out["never_finish"] = run.never_finish;
  out["risk"] = run.risk;
  out["inputs"] = run.inputs;
  out["chosen"] = plan.best == i;
  return out;
}

namespace {

/// The FID on the way, against the images and dollars of the candidate: of trainings that keep their best checkpoint.
OrderedJson quality_curve(const Request& request, const PlanCandidate& candidate, const PlannedRun& run) {
  const double batch = batch_of(request, candidate);
  const calibration::QualityInterval images = request.quality->at(batch).images;
  OrderedJson out = OrderedJson::array();
  for (const calibration::OutlookPoint& point : request.quality->given({}, "", batch, 2 * images.high).curve)
    out.push_back({{"images", point.images},
                   {"usd", std::max(0.0, run.usd.median + run.usd_per_image * (point.images - images.median))},
                   {"best_fid", {{"median", point.best.median}, {"interval", {point.best.low, point.best.high}}}}});
  return out;
}

OrderedJson rows(const Request& request, const Plan& plan, const std::vector<std::size_t>& which) {
  OrderedJson out = OrderedJson::array();
  for (const std::size_t i : which) out.push_back(row_json(request, plan, i));
  return out;
}

/// The candidate's scenario, with paths relative to `folder`.
Json scenario_in(const Request& request, const PlanCandidate& candidate, const std::filesystem::path& folder) {
  Json scenario = sim::document_of(CandidateScenarios(request).parts(candidate));
  auto& trace = scenario["workload"]["trace"];
  const auto name = trace.get<std::string>();
  if (!traces::comes_with_program(name)) trace = path_from(folder, name);
  if (auto& workload = scenario["workload"]; workload.contains("quality") && workload["quality"].contains("curve"))
    workload["quality"]["curve"] = path_from(folder, workload["quality"]["curve"].get<std::string>());
  auto& platform = scenario["platform"];
  for (auto* place : platform.contains("pools") ? std::vector{&platform["pools"][0], &platform["pools"][1]}
                                                : std::vector{&platform}) {
    auto& catalog = (*place)["catalog"];
    if (!platforms::is_provider(catalog.get<std::string>())) catalog = path_from(folder, catalog.get<std::string>());
  }
  if (auto& policy = scenario["policy"]; policy.contains("table"))
    policy["table"] = path_from(folder, policy["table"].get<std::string>());
  return scenario;
}

/// All simulated candidates: first those that meet the goals, then the others; each best first.
std::vector<std::size_t> simulated_in_order(const Request& request, const Plan& plan) {
  std::vector<std::pair<double, std::size_t>> order;
  for (std::size_t i = 0; i < plan.runs.size(); ++i) {
    const PlannedRun& run = plan.runs[i];
    if (!run.simulated()) continue;
    order.emplace_back(objective_of(request, run), i);
  }
  std::sort(order.begin(), order.end());
  std::stable_partition(order.begin(), order.end(),
                        [&](const auto& entry) { return plan.runs[entry.second].verdict == Verdict::meets; });
  std::vector<std::size_t> indices;
  for (const auto& [value, i] : order) indices.push_back(i);
  return indices;
}

/// The first candidate in `order` of each provider on each market, and on spot and on demand together.
std::vector<std::size_t> best_of_each(const Plan& plan, const std::vector<std::size_t>& order) {
  std::vector<std::size_t> best;
  std::set<std::tuple<std::size_t, platforms::Market, bool>> seen;
  for (const std::size_t i : order) {
    const PlanCandidate& candidate = plan.candidates.all[i];
    if (plan.runs[i].verdict == Verdict::meets &&
        seen.emplace(candidate.catalog, candidate.market, candidate.on_demand_nodes > 0).second)
      best.push_back(i);
  }
  return best;
}

/// A step of one GPU by itself, for each GPU and batch size that was simulated; of a growing model that of its last
/// stage.
OrderedJson steps_json(const Request& request, const Plan& plan) {
  std::map<std::pair<std::string, int>, OrderedJson> steps;
  for (std::size_t i = 0; i < plan.runs.size(); ++i) {
    if (!plan.runs[i].simulated()) continue;
    const PlanCandidate& candidate = plan.candidates.all[i];
    const Request::Batch& batch = request.batches[candidate.batch];
    OrderedJson& step = steps[{candidate.instance->gpu, batch.per_gpu}];
    if (!step.is_null()) continue;
    const platforms::Gpu& gpu = request.catalogs[candidate.catalog].platform->gpu_of(*candidate.instance);
    const calibration::WorkloadModel workload =
        calibration::workload_on(request.trace, request.trace.batches[batch.stages.back()], gpu, nullptr);
    const int passes = request.accumulation_steps;
    const double error = workload.relative_error, middle = passes * workload.central.mean_s();
    step = {{"gpu", gpu.name}, {"batch_per_gpu", batch.per_gpu}, {"seconds", middle}};
    step["interval_s"] = {passes * workload.low.mean_s() / (1 + error), passes * workload.high.mean_s() * (1 + error)};
    step["inputs"] = calibration::to_string(workload.provenance);
    step["how"] = workload.rule;
  }
  OrderedJson out = OrderedJson::array();
  for (auto& [key, step] : steps) out.push_back(std::move(step));
  return out;
}

OrderedJson request_json(const Request& request) {
  OrderedJson out = {
      {"model", request.trace.model},
      {"trace", request.trace_choice},
      {"device", request.trace.device.name},
      {"batch_per_gpu", request.batches.back().per_gpu},
      {"batches_per_gpu", OrderedJson::array()},
      {"images", request.quality ? OrderedJson(nullptr) : OrderedJson(request.images)},
      {"fid", request.quality ? OrderedJson(request.quality->fid()) : OrderedJson(nullptr)},
      {"deadline", request.deadline_text.empty() ? OrderedJson(nullptr) : OrderedJson(request.deadline_text)},
      {"deadline_s", request.deadline ? OrderedJson(request.deadline->si) : OrderedJson(nullptr)},
      {"start", request.start.empty() ? OrderedJson(nullptr) : OrderedJson(request.start)},
      {"budget_usd", request.budget ? OrderedJson(decimal(*request.budget)) : OrderedJson(nullptr)},
      {"budget_usd_number", request.budget ? OrderedJson(usd_of(*request.budget)) : OrderedJson(nullptr)},
      {"objective", to_string(request.objective)},
      {"seeds", runs_for(request, request.seeds_at_risk)},
      {"seeds_without_risk", runs_for(request, request.seeds)},
      {"certainty", request.certainty},
      {"sure", request.sure},
      {"seed", request.seed}};
  for (const Request::Batch& batch : request.batches) out["batches_per_gpu"].push_back(batch.per_gpu);
  out["schemes"] = request.schemes;
  out["prices_aged_to"] = request.price_age.today.empty() ? OrderedJson(nullptr) : OrderedJson(request.price_age.today);
  out["max_price_age_days"] = request.price_age.most_days;
  OrderedJson catalogs = OrderedJson::array();
  for (const auto& entry : request.catalogs) catalogs.push_back(entry.platform->name);
  out["catalogs"] = std::move(catalogs);
  return out;
}

/// What the plan assumes about a training on the candidate's nodes.
std::vector<std::string> assumptions_of(const Request& request, const PlanCandidate& candidate) {
  std::vector<std::string> out;
  const Request::Catalog& catalog = request.catalogs[candidate.catalog];
  if (candidate.at_risk() && !request.on_notice && !candidate.checkpoint.empty())
    out.push_back(
        fmt::format("it is assumed that the training saves itself within the notice of {} before its nodes are taken "
                    "back, and goes "
                    "on from there (otherwise --saves every:1h, or --saves never): \"checkpoint\" of the request says "
                    "whether it does",
                    to_string(platforms::provider_of(catalog.platform->provider).spot_notice)));
  if (traces::is_counted(request.trace.software))
    out.push_back(
        fmt::format("{} of GPU memory are left to a step of {} images, {}: "
                    "published peaks of trainings are 2.1 to 3 times as high",
                    to_string(needed_memory(request, request.batches[candidate.batch])),
                    request.batches[candidate.batch].per_gpu, memory_margin(request)));
  return out;
}

}  // namespace

std::string plan_json(const Request& request, const Plan& plan, const std::filesystem::path& folder) {
  const std::vector<std::size_t> order = simulated_in_order(request, plan);
  OrderedJson out;
  out["schema"] = "ganymede.plan/1";
  out["request"] = request_json(request);
  out["searched"] = {{"candidates", plan.candidates.all.size()},
                     {"too_slow", plan.count(Verdict::too_slow)},
                     {"too_dear", plan.count(Verdict::too_dear)},
                     {"too_rare", plan.count(Verdict::too_rare)},
                     {"beaten", plan.count(Verdict::beaten)},
                     {"impossible", plan.count(Verdict::impossible)},
                     {"simulated", plan.simulated},
                     {"meeting", plan.count(Verdict::meets)}};
  out["steps"] = steps_json(request, plan);
  out["chosen"] = nullptr;
  if (plan.best) {
    out["chosen"] = row_json(request, plan, *plan.best);
    out["chosen"]["scenario"] = scenario_in(request, plan.candidates.all[*plan.best], folder);
    if (request.quality)
      out["chosen"]["quality"]["curve"] =
          quality_curve(request, plan.candidates.all[*plan.best], plan.runs[*plan.best]);
    out["chosen"]["warnings"] = plan.runs[*plan.best].warnings;
    for (const std::string& warning : assumptions_of(request, plan.candidates.all[*plan.best]))
      out["chosen"]["warnings"].push_back(warning);
  }
  out["cards"] = nullptr;
  if (plan.cards.cheapest)
    out["cards"] = {{"cheapest", row_json(request, plan, *plan.cards.cheapest)},
                    {"balanced", row_json(request, plan, *plan.cards.balanced)},
                    {"safest", row_json(request, plan, *plan.cards.safest)}};
  out["more_money"] = rows(request, plan, plan.more_money);
  out["best_of_known_risk"] = nullptr;
  if (plan.best_of_known_risk) out["best_of_known_risk"] = row_json(request, plan, *plan.best_of_known_risk);
  out["best_of_each"] = rows(request, plan, best_of_each(plan, order));
  out["pareto"] = rows(request, plan, plan.pareto);
  out["near_misses"] = rows(request, plan, plan.near_misses);
  out["left_out"] = plan.candidates.left_out;
  // Each reason is listed once, with the number of its candidates.
  std::map<std::string, std::size_t> reasons;
  for (const PlannedRun& run : plan.runs)
    if (run.verdict == Verdict::impossible) ++reasons[run.reason];
  out["cannot_run"] = OrderedJson::array();
  for (const auto& [reason, count] : reasons) out["cannot_run"].push_back({{"candidates", count}, {"reason", reason}});
  out["simulated"] = rows(request, plan, order);
  out["asked"] = request_document(request, folder);
  out["provenance"] = {{"tool", "ganymede " GANYMEDE_VERSION},
                       {"caveat", "quota and availability are not known and not promised"},
                       {"request", request.content},
                       {"files", request.file_hashes}};
  return out.dump(2) + "\n";
}

}  // namespace ganymede::plan
