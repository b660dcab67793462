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

RowKey key_of(const Request& request, const PlanCandidate& candidate) {
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

RowKey key_of(const JsonNode& node) {
  constexpr std::int64_t kMost = 1 << 24;
  JsonObject row(node);
  const auto text = [&](const char* key) { return row.required(key).as_string(); };
  const auto count = [&](const char* key) { return row.required(key).as_integer(0, kMost); };
  const JsonNode checkpoint = row.required("checkpoint");
  return {text("provider"),       text("region"),
          text("market"),         text("instance"),
          count("nodes"),         count("on_demand_nodes"),
          count("gpus_per_node"), count("batch_per_gpu"),
          text("policy"),         checkpoint.value().is_null() ? "" : checkpoint.as_string()};
}

constexpr double kLargest = 1e300;

PlanMeasure read_row_measure(const JsonNode& node) {
  JsonObject in(node);
  const JsonNode interval = in.required("interval");
  const std::vector<double> ends = interval.as_numbers(0, kLargest);
  if (ends.size() != 2) interval.expected("two numbers");
  return {in.required("median").as_number(0, kLargest), ends[0], ends[1]};
}

std::optional<double> read_mean(const JsonNode& node) {
  return node.value().is_null() ? std::nullopt : std::optional(node.as_number(0, kLargest));
}

/// A row of `simulated`. Warnings are left out, because a plan keeps those of the chosen candidate only.
PlannedRun read_run(const JsonNode& node) {
  JsonObject in(node);
  PlannedRun run;
  run.verdict = in.required("verdict").as_choice({"meets", "misses"}) == "meets" ? Verdict::meets : Verdict::misses;
  if (const auto reason = in.optional("reason")) run.reason = reason->as_string();
  run.time_s = read_row_measure(in.required("time_s"));
  const JsonNode usd = in.required("usd");
  run.usd = read_row_measure(usd);
  JsonObject cost(usd);
  run.usd_at_worst = cost.required("at_worst_prices").as_number(0, kLargest);
  run.usd_expected = read_mean(cost.required("expected"));
  run.usd_worst_tenth = read_mean(cost.required("worst_tenth"));
  const JsonNode kg = in.required("kg_co2e");
  run.carbon_known = !kg.value().is_null();
  if (run.carbon_known) run.kg_co2e = read_row_measure(kg);
  run.gpu_busy = in.required("gpu_busy").as_number(0, 1);
  if (const auto rate = in.optional("images_per_s")) run.images_per_s = rate->as_number(0, kLargest);
  run.losses = in.required("losses_mean").as_number(0, kLargest);
  run.met_share = in.required("met_share").as_number(0, 1);
  run.probability = in.required("probability").as_number(0, 1);
  run.seeds = static_cast<int>(in.required("seeds").as_integer(0, 10'000));
  run.never_finish = static_cast<int>(in.required("never_finish").as_integer(0, 10'000));
  if (const auto quality = in.optional("quality"))
    if (const auto slope = JsonObject(*quality).optional("usd_per_image"))
      run.usd_per_image = slope->as_number(0, kLargest);
  run.risk = in.required("risk").as_string();
  run.inputs = in.required("inputs").as_string();
  return run;
}

/// Refuses a plan whose prices are not those of the catalogs any more.
void check_price(const JsonNode& node, const PlanCandidate& candidate) {
  const JsonNode stated = node.child("price").child("usd_per_hour");
  const std::string now =
      decimal(platforms::find_price(*candidate.instance, candidate.region, candidate.market)->per_hour);
  if (stated.as_string() != now)
    stated.fail(fmt::format("the plan was made at {} USD/h, and the catalog now says {}; {}", stated.as_string(), now,
                            kPlanAgain));
}

}  // namespace

KnownPlan read_plan(const JsonNode& node) {
  JsonObject in(node);
  check_schema(in, "ganymede.plan/1");
  const auto asked = in.optional("asked");
  if (!asked) node.fail(fmt::format("the plan does not say what was asked, \"asked\" is missing; {}", kPlanAgain));
  KnownPlan known{read_request(*asked, ""), {}};
  const JsonNode chosen = in.required("chosen");
  if (chosen.value().is_null()) chosen.fail("the plan has chosen nothing: no candidate meets its goals");
  Plan& plan = known.plan;
  plan.candidates = enumerate(known.request, false);
  plan.runs.resize(plan.candidates.all.size());
  std::map<RowKey, std::size_t> places;
  std::set<RowKey> twice;  // two policies of one name with different settings
  for (std::size_t i = 0; i < plan.candidates.all.size(); ++i) {
    const RowKey key = key_of(known.request, plan.candidates.all[i]);
    if (!places.emplace(key, i).second) twice.insert(key);
  }
  for (const JsonNode& row : in.required("simulated").as_array()) {
    const RowKey key = key_of(row);
    const auto place = places.find(key);
    if (place == places.end()) row.fail(fmt::format("the catalogs do not offer this any more; {}", kPlanAgain));
    check_price(row, plan.candidates.all[place->second]);
    if (twice.contains(key)) continue;  // it is simulated again
    PlannedRun run = read_run(row);
    PlannedRun& kept = plan.runs[place->second];
    // An exhaustive plan has a row for each scheme.
    if (kept.simulated() && objective_of(known.request, kept) <= objective_of(known.request, run)) continue;
    kept = std::move(run);
    plan.candidates.all[place->second].scheme = row.child("scheme").as_string();
    ++plan.simulated;
  }
  const auto best = places.find(key_of(chosen));
  if (best == places.end() || plan.runs[best->second].verdict != Verdict::meets)
    chosen.fail(fmt::format("it is not among the simulated candidates that meet the goals; {}", kPlanAgain));
  plan.best = best->second;
  return known;
}

}  // namespace ganymede::plan
