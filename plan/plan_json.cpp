#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "calibration/workload_model.hpp"
#include "common/json_value.hpp"
#include "common/units.hpp"
#include "plan/candidate_scenarios.hpp"
#include "plan/checks.hpp"
#include "plan/choice.hpp"
#include "plan/evaluate.hpp"
#include "plan/planner.hpp"
#include "platforms/catalog.hpp"
#include "platforms/price_doubt.hpp"
#include "platforms/providers.hpp"
#include "traces/layer_list.hpp"
#include "traces/recipe.hpp"

namespace ganymede::plan {
namespace {
documents::Measure measure_of(const PlanMeasure& measure) { return {measure.median, {measure.low, measure.high}}; }
documents::Measure measure_of(const calibration::QualityInterval& measure) {
  return {measure.median, {measure.low, measure.high}};
}

/// Candidates that miss the goals and have a row each. Of further ones a plan says in a line why they do.
constexpr std::ptrdiff_t kRowsOfMisses = 200;

/// The text; none if it is empty.
std::optional<std::string> unless_empty(std::string text) {
  return text.empty() ? std::nullopt : std::optional(std::move(text));
}

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
documents::PlanPrice price_of_node(const Request& request, const PlanCandidate& candidate,
                                   const platforms::Price& price) {
  const platforms::PriceDoubt doubt = doubt_of(request, candidate);
  return {price.per_hour,
          price.as_of,
          price.origin.source,
          doubt.any() ? std::optional(doubt.why) : std::nullopt,
          {doubt.low, doubt.high}};
}

/// How many images the candidate's training takes to the FID, and what a point of FID less costs.
documents::PlanQuality quality_of(const Request& request, const PlanCandidate& candidate, const PlannedRun& run) {
  const double batch = batch_of(request, candidate);
  const calibration::TargetOutlook& target = request.quality->at(batch);
  const auto more = request.quality->factor_of_a_point(batch);
  documents::PlanQuality out;
  out.batch = batch;
  out.images = measure_of(target.images);
  out.never = 1 - target.probability;
  out.usd_per_image = run.usd_per_image;
  if (more) out.usd_per_point = run.usd_per_image * target.images.median * (*more - 1);
  if (request.checks) {
    const auto every = static_cast<double>(check_interval_of(request, candidate));
    out.checks = {every, request.checks->pause(candidate.gpus()).si, std::ceil(target.images.median / every),
                  every / 2};
  }
  return out;
}

/// The FID on the way, against the images and dollars of the candidate: of trainings that keep their best checkpoint.
std::vector<documents::QualityPoint> quality_curve(const Request& request, const PlanCandidate& candidate,
                                                   const PlannedRun& run) {
  const double batch = batch_of(request, candidate);
  const calibration::QualityInterval images = request.quality->at(batch).images;
  std::vector<documents::QualityPoint> out;
  for (const calibration::OutlookPoint& point : request.quality->given({}, "", batch, 2 * images.high).curve)
    out.push_back({point.images, std::max(0.0, run.usd.median + run.usd_per_image * (point.images - images.median)),
                   measure_of(point.best)});
  return out;
}

}  // namespace

documents::PlanRow row_of(const Request& request, const Plan& plan, std::size_t i) {
  const PlanCandidate& candidate = plan.candidates.all[i];
  const PlannedRun& run = plan.runs[i];
  const platforms::Platform& platform = *request.catalogs[candidate.catalog].platform;
  const platforms::Price& price = *platforms::find_price(*candidate.instance, candidate.region, candidate.market);
  documents::PlanRow row;
  row.provider = platform.name;
  row.region = candidate.region;
  row.market = platforms::to_string(candidate.market);
  row.instance = candidate.instance->name;
  row.nodes = candidate.nodes;
  row.on_demand_nodes = candidate.market == platforms::Market::on_demand ? candidate.nodes : candidate.on_demand_nodes;
  row.gpus_per_node = candidate.gpus_per_node;
  row.part_of_instance = candidate.part_of_instance();
  row.gpu = candidate.instance->gpu;
  row.gpus = candidate.gpus();
  row.batch_per_gpu = request.batches[candidate.batch].per_gpu;
  row.scheme = candidate.scheme;
  row.policy = candidate.policy->name();
  row.checkpoint = unless_empty(candidate.checkpoint);
  row.usd_per_hour = price_of(candidate);
  row.prices_as_of = price.as_of;
  row.price = price_of_node(request, candidate, price);
  row.verdict = name_of(run.verdict);
  row.bounds = {candidate.bounds.time_s, candidate.bounds.usd};
  row.owned = platforms::owning_assumes(platform, *candidate.instance, price);
  row.reason = run.reason;
  if (!row.simulated()) return row;
  row.time_s = measure_of(run.time_s);
  row.usd = {run.usd.median, {run.usd.low, run.usd.high}, run.usd_at_worst, run.usd_expected, run.usd_worst_tenth};
  if (run.carbon_known) row.kg_co2e = measure_of(run.kg_co2e);
  if (request.quality) row.quality = quality_of(request, candidate, run);
  row.gpu_busy = run.gpu_busy;
  row.images_per_s = run.images_per_s;
  row.losses_mean = run.losses;
  row.lost_s = run.lost_s;
  row.saved_every_s = run.saved_every_s;
  row.met_share = run.met_share;
  row.probability = run.probability;
  row.probability_runs = run.probability_runs;
  row.seeds = run.seeds;
  row.never_finish = run.never_finish;
  row.risk = run.risk;
  row.inputs = run.inputs;
  row.chosen = plan.best == i;
  return row;
}

namespace {

std::vector<documents::PlanRow> rows(const Request& request, const Plan& plan, const std::vector<std::size_t>& which) {
  std::vector<documents::PlanRow> out;
  for (const std::size_t i : which) out.push_back(row_of(request, plan, i));
  return out;
}

/// The candidate's scenario, with paths relative to `folder`.
Json scenario_in(const Request& request, const PlanCandidate& candidate, const std::filesystem::path& folder) {
  Json scenario = sim::document_of(CandidateScenarios(request).parts(candidate));
  auto& trace = scenario["workload"]["trace"];
  trace = trace_from(folder, trace.get<std::string>());
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
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < plan.runs.size(); ++i)
    if (plan.runs[i].simulated()) order.push_back(i);
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    const bool meets = plan.runs[a].verdict == Verdict::meets;
    if (meets != (plan.runs[b].verdict == Verdict::meets)) return meets;
    return is_better(request, plan, a, b);
  });
  return order;
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
std::vector<documents::PlanStep> steps_of(const Request& request, const Plan& plan) {
  std::map<std::pair<std::string, int>, documents::PlanStep> steps;
  for (std::size_t i = 0; i < plan.runs.size(); ++i) {
    if (!plan.runs[i].simulated()) continue;
    const PlanCandidate& candidate = plan.candidates.all[i];
    const Request::Batch& batch = request.batches[candidate.batch];
    const auto [step, is_new] = steps.try_emplace({candidate.instance->gpu, batch.per_gpu});
    if (!is_new) continue;
    const platforms::Gpu& gpu = request.catalogs[candidate.catalog].platform->gpu_of(*candidate.instance);
    const calibration::WorkloadModel workload =
        calibration::workload_on(request.trace, request.trace.batches[batch.stages.back()], gpu, nullptr);
    const int passes = batch.passes;
    const double error = workload.relative_error;
    step->second = {gpu.name,
                    batch.per_gpu,
                    passes * workload.central.mean_s(),
                    {passes * workload.low.mean_s() / (1 + error), passes * workload.high.mean_s() * (1 + error)},
                    std::string(calibration::to_string(workload.provenance)),
                    workload.rule};
  }
  std::vector<documents::PlanStep> out;
  for (auto& [key, step] : steps) out.push_back(std::move(step));
  return out;
}

documents::PlanRequest request_of(const Request& request) {
  documents::PlanRequest out;
  out.model = request.trace.model;
  out.trace = request.trace_choice;
  out.device = request.trace.device.name;
  out.batch_per_gpu = request.batches.back().per_gpu;
  for (const Request::Batch& batch : request.batches) out.batches_per_gpu.push_back(batch.per_gpu);
  if (request.quality)
    out.fid = request.quality->fid();
  else
    out.images = request.images;
  out.deadline = unless_empty(request.deadline_text);
  out.deadline_s = request.deadline;
  out.start = unless_empty(request.start);
  out.budget = request.budget;
  out.objective = to_string(request.objective);
  out.seeds = runs_for(request, request.seeds_at_risk);
  out.seeds_without_risk = runs_for(request, request.seeds);
  out.certainty = request.certainty;
  out.sure = request.sure;
  out.seed = request.seed;
  out.schemes = request.schemes;
  out.prices_aged_to = unless_empty(request.price_age.today);
  out.max_price_age_days = request.price_age.most_days;
  for (const auto& entry : request.catalogs) out.catalogs.push_back(entry.platform->name);
  return out;
}

/// What the candidate costs if its price, which is believed, has drifted upwards since its date; empty: it is fresh.
/// Its nodes are paid for while it runs, at most.
std::string drift_of(const Request& request, const PlanCandidate& candidate, const PlannedRun& run) {
  const platforms::Price& price = *platforms::find_price(*candidate.instance, candidate.region, candidate.market);
  const auto drift = platforms::price_drift(*candidate.instance, price, request.price_age.today);
  if (!drift || doubt_of(request, candidate).any()) return "";
  const double nodes = static_cast<double>(price_of(candidate).value) * 1e-6 * run.time_s.median / 3600;
  return fmt::format(
      "the price is {} days old; if it has risen since as far as such prices have in that time, to {:.3g} times as "
      "much, the training costs {:.2f} USD",
      drift->days, drift->high, run.usd.median + (drift->high - 1) * std::min(run.usd.median, nodes));
}

/// What the plan assumes about a training on the candidate's nodes.
std::vector<std::string> assumptions_of(const Request& request, const PlanCandidate& candidate, const PlannedRun& run) {
  std::vector<std::string> out;
  if (std::string drift = drift_of(request, candidate, run); !drift.empty()) out.push_back(std::move(drift));
  const Request::Catalog& catalog = request.catalogs[candidate.catalog];
  const Request::Batch& batch = request.batches[candidate.batch];
  if (candidate.at_risk() && !request.on_notice && !candidate.checkpoint.empty())
    out.push_back(fmt::format(
        "it is assumed that the training saves itself{}, but not within the notice of {} before its nodes are "
        "taken back (if it does, --saves on-notice; if it saves nothing, --saves never): \"checkpoint\" of "
        "the request says how it does",
        candidate.checkpoint == request.recipe_saves
            ? fmt::format(" every {}, as its recipe does (--checkpoint daly: as often as is best)",
                          candidate.checkpoint)
            : "",
        to_string(platforms::provider_of(catalog.platform->provider).spot_notice)));
  if (traces::is_counted(request.trace.software))
    out.push_back(fmt::format("a {} of {} images takes {} of GPU memory, counted from the layers of {}",
                              batch.passes > 1 ? "pass" : "step", batch.per_gpu / batch.passes,
                              calibration::to_text(needed_memory(
                                  request, batch, catalog.platform->gpu_of(*candidate.instance), candidate.gpus() > 1)),
                              request.trace.model));
  if (request.trace.software.name == traces::kRecipeSoftware && batch.gpus.empty()) {
    const int own = traces::resolve_recipe(request.trace.software.version).batch_for(candidate.gpus());
    if (const int all = batch.per_gpu * candidate.gpus(); own > 0 && all != own)
      out.push_back(
          fmt::format("the recipe trains with {} images a step on all GPUs, and this with {}: what that does to "
                      "quality is not known",
                      own, all));
  }
  return out;
}

}  // namespace

std::string plan_json(const Request& request, const Plan& plan, const std::filesystem::path& folder) {
  const std::vector<std::size_t> order = simulated_in_order(request, plan);
  const auto row = [&](std::optional<std::size_t> i) {
    return i ? std::optional(row_of(request, plan, *i)) : std::nullopt;
  };
  const auto count = [&](Verdict verdict) { return static_cast<std::int64_t>(plan.count(verdict)); };
  documents::Plan out;
  out.request = request_of(request);
  out.searched = {static_cast<std::int64_t>(plan.candidates.all.size()),
                  count(Verdict::too_slow),
                  count(Verdict::too_dear),
                  count(Verdict::too_rare),
                  count(Verdict::beaten) - static_cast<std::int64_t>(plan.untried),
                  count(Verdict::impossible),
                  static_cast<std::int64_t>(plan.simulated),
                  count(Verdict::meets),
                  static_cast<std::int64_t>(plan.untried)};
  out.effort = to_string(plan.effort);
  out.steps = steps_of(request, plan);
  out.chosen = row(plan.best);
  if (plan.best) {
    const PlanCandidate& best = plan.candidates.all[*plan.best];
    out.chosen->scenario.text = scenario_in(request, best, folder).dump();
    if (request.quality) out.chosen->quality->curve = quality_curve(request, best, plan.runs[*plan.best]);
    out.chosen->warnings = plan.runs[*plan.best].warnings;
    for (const std::string& warning : assumptions_of(request, best, plan.runs[*plan.best]))
      out.chosen->warnings->push_back(warning);
  }
  if (plan.cards.cheapest) out.cards = {*row(plan.cards.cheapest), *row(plan.cards.balanced), *row(plan.cards.safest)};
  out.more_money = rows(request, plan, plan.more_money);
  out.best_of_known_risk = row(plan.best_of_known_risk);
  out.best_of_each = rows(request, plan, best_of_each(plan, order));
  out.pareto = rows(request, plan, plan.pareto);
  out.near_misses = rows(request, plan, plan.near_misses);
  out.left_out = plan.candidates.left_out;
  // Each reason is listed once, with the number of its candidates.
  std::map<std::string, std::int64_t> reasons;
  for (const PlannedRun& run : plan.runs)
    if (run.verdict == Verdict::impossible) ++reasons[run.reason];
  for (const auto& [reason, candidates] : reasons) out.cannot_run.push_back({candidates, reason});
  const auto misses =
      std::find_if(order.begin(), order.end(), [&](std::size_t i) { return plan.runs[i].verdict == Verdict::misses; });
  const auto further = misses + std::min(kRowsOfMisses, order.end() - misses);
  out.simulated = rows(request, plan, {order.begin(), further});
  for (auto i = further; i != order.end(); ++i)
    out.missed.emplace(key_of(request, plan.candidates.all[*i]), plan.runs[*i].reason);
  out.asked.text = request_document(request, folder).dump();
  out.tool = "ganymede " GANYMEDE_VERSION;
  out.caveat = "quota and availability are not known and not promised";
  out.request_content.text = request.content.dump();
  for (const auto& [pointer, hash] : request.file_hashes.items()) out.file_hashes[pointer] = hash.as_string();
  return documents::plan_text(out);
}

}  // namespace ganymede::plan
