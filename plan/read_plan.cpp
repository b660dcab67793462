// Reads a plan's file: its request, and what it found out about each candidate.

#include <fmt/format.h>

#include <map>
#include <set>
#include <tuple>

#include "common/json.hpp"
#include "plan/planner.hpp"

namespace ganymede::plan {
namespace {

constexpr const char* kPlanAgain = "plan again, with `ganymede plan --save`";

/// What tells a row of a plan from all others: provider, region, market, instance, nodes, nodes on demand, GPUs of
/// each, batch, policy and checkpoint interval.
using RowKey = std::tuple<std::string, std::string, std::string, std::string, std::int64_t, std::int64_t, std::int64_t,
                          std::int64_t, std::string, std::string>;

RowKey row_key_of(const Request& request, const PlanCandidate& candidate) {
  return {request.catalogs[candidate.catalog].platform->name,
          candidate.region,
          std::string(platforms::to_string(candidate.market)),
          candidate.instance->name,
          candidate.nodes,
          candidate.market == platforms::Market::on_demand ? candidate.nodes : candidate.on_demand_nodes,
          candidate.gpus_per_node,
          request.batches[candidate.batch].per_gpu,
          candidate.policy->name(),
          candidate.checkpoint};
}

RowKey row_key_of(const documents::PlanRow& row) {
  return {row.provider,      row.region,
          row.market,        row.instance,
          row.nodes,         row.on_demand_nodes,
          row.gpus_per_node, row.batch_per_gpu.value_or(0),
          row.policy,        row.checkpoint.value_or("")};
}

PlanMeasure plan_measure(double median, const documents::Interval& interval) {
  return {median, interval.low, interval.high};
}

/// A row of `simulated`. Warnings are left out, because a plan keeps those of the chosen candidate only.
PlannedRun run_of(const documents::PlanRow& row) {
  PlannedRun run;
  run.verdict = row.verdict == "meets" ? Verdict::meets : Verdict::misses;
  run.reason = row.reason;
  run.time_s = plan_measure(row.time_s.median, row.time_s.interval);
  run.usd = plan_measure(row.usd.median, row.usd.interval);
  run.usd_at_worst = row.usd.at_worst_prices.value_or(row.usd.median);
  run.usd_expected = row.usd.expected;
  run.usd_worst_tenth = row.usd.worst_tenth;
  run.carbon_known = row.kg_co2e.has_value();
  if (row.kg_co2e) run.kg_co2e = plan_measure(row.kg_co2e->median, row.kg_co2e->interval);
  run.gpu_busy = row.gpu_busy;
  run.images_per_s = row.images_per_s.value_or(0);
  run.losses = row.losses_mean;
  run.lost_s = row.lost_s.value_or(0);
  run.saved_every_s = row.saved_every_s.value_or(0);
  run.met_share = row.met_share;
  run.probability = row.probability.value_or(row.met_share);
  run.probability_runs = row.probability_runs;
  run.seeds = row.seeds;
  run.never_finish = row.never_finish;
  if (row.quality) run.usd_per_image = row.quality->usd_per_image;
  run.risk = row.risk;
  run.inputs = row.inputs;
  return run;
}

/// Refuses a plan whose prices are not those of the catalogs any more.
void check_price(const JsonNode& node, const documents::PlanRow& row, const PlanCandidate& candidate) {
  const MicroUsdPerHour now = platforms::find_price(*candidate.instance, candidate.region, candidate.market)->per_hour;
  if (!row.price || row.price->usd_per_hour != now)
    node.fail(fmt::format("the plan was made at {} USD/h, and the catalog now says {}; {}",
                          row.price ? decimal(row.price->usd_per_hour) : "another price", decimal(now), kPlanAgain));
}

}  // namespace

KnownPlan read_plan(const JsonNode& node) {
  JsonObject in(node);
  check_schema(in, documents::kPlanSchema);
  const auto asked = in.optional("asked");
  if (!asked) node.fail(fmt::format("the plan does not say what was asked, \"asked\" is missing; {}", kPlanAgain));
  const documents::Plan file = documents::read_plan(node);
  KnownPlan known{read_request(*asked, ""), {}};
  if (!file.chosen) node.child("chosen").fail("the plan has chosen nothing: no candidate meets its goals");
  Plan& plan = known.plan;
  plan.candidates = enumerate(known.request, false);
  plan.runs.resize(plan.candidates.all.size());
  std::map<RowKey, std::size_t> places;
  std::set<RowKey> twice;  // two policies of one name with different settings
  for (std::size_t i = 0; i < plan.candidates.all.size(); ++i) {
    const RowKey key = row_key_of(known.request, plan.candidates.all[i]);
    if (!places.emplace(key, i).second) twice.insert(key);
  }
  const std::vector<JsonNode> nodes = node.child("simulated").as_array();
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const documents::PlanRow& row = file.simulated[i];
    if (!row.simulated())
      nodes[i].fail(fmt::format("its verdict is \"{}\", expected \"meets\" or \"misses\"", row.verdict));
    const RowKey key = row_key_of(row);
    const auto place = places.find(key);
    if (place == places.end()) nodes[i].fail(fmt::format("the catalogs do not offer this any more; {}", kPlanAgain));
    check_price(nodes[i], row, plan.candidates.all[place->second]);
    if (twice.contains(key)) continue;  // it is simulated again
    PlannedRun run = run_of(row);
    PlannedRun& kept = plan.runs[place->second];
    // An exhaustive plan has a row for each scheme.
    if (kept.simulated() && objective_of(known.request, kept) <= objective_of(known.request, run)) continue;
    kept = std::move(run);
    plan.candidates.all[place->second].scheme = row.scheme;
    ++plan.simulated;
  }
  if (!file.missed.empty())
    for (std::size_t i = 0; i < plan.runs.size(); ++i) {
      const auto missed = file.missed.find(key_of(known.request, plan.candidates.all[i]));
      if (missed == file.missed.end() || plan.runs[i].simulated()) continue;
      plan.runs[i].verdict = Verdict::misses;
      plan.runs[i].reason = missed->second;
      ++plan.simulated;
    }
  const auto best = places.find(row_key_of(*file.chosen));
  if (best == places.end() || plan.runs[best->second].verdict != Verdict::meets)
    node.child("chosen").fail(
        fmt::format("it is not among the simulated candidates that meet the goals; {}", kPlanAgain));
  plan.best = best->second;
  return known;
}

}  // namespace ganymede::plan
