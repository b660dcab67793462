#include "documents/plan.hpp"

#include "common/json.hpp"
#include "common/json_value.hpp"
#include "common/usd.hpp"
#include "documents/forms.hpp"

namespace ganymede::documents {
namespace {

const Reading kReading = {.strict = false, .again = "plan again, with `ganymede plan --save`"};

}  // namespace

void describe(Walk& walk, Measure& measure) {
  walk.member("median", measure.median, {.low = 0, .required = true});
  walk.member("interval", measure.interval, {.says = "with all stated error", .low = 0, .required = true});
}

void describe(Walk& walk, PlanUsd& usd) {
  walk.member("median", usd.median, kRequired);
  walk.member("interval", usd.interval, {.says = "with all stated error", .required = true});
  walk.member_if_any("at_worst_prices", usd.at_worst_prices,
                     {.says = "with doubtful prices at their high ends; candidates are compared by it"});
  walk.member("expected", usd.expected, {.says = "mean over the runs"});
  walk.member("worst_tenth", usd.worst_tenth, {.says = "mean over the dearest tenth of the runs"});
}

void describe(Walk& walk, PlanPrice& price) {
  walk.member("usd_per_hour", price.usd_per_hour, {.says = "of a node", .required = true});
  walk.number_of("usd_per_hour_number", price.usd_per_hour);
  walk.member("as_of", price.as_of);
  walk.member("source", price.source);
  walk.member("doubt", price.doubt, {.says = "why it is doubtful"});
  walk.member("factors", price.factors, {.says = "the prices of the bill may be so many times as high"});
}

void describe(Walk& walk, QualityPoint& point) {
  walk.member("images", point.images, kRequired);
  walk.member("usd", point.usd, kRequired);
  walk.member("best_fid", point.best_fid, kRequired);
}

void describe(Walk& walk, PlanQuality::Checks& checks) {
  walk.member("every_images", checks.every_images, kRequired);
  walk.member("pause_s", checks.pause_s, kRequired);
  walk.member("count", checks.count, kRequired);
  walk.member("images_beyond", checks.images_beyond, {.says = "trained until an evaluation finds out"});
}

void describe(Walk& walk, PlanQuality& quality) {
  walk.member("batch", quality.batch);
  walk.member("images", quality.images, {.says = "of a training that gets there", .required = true});
  walk.member("never", quality.never, {.says = "share that never gets there", .low = 0, .high = 1, .required = true});
  walk.member("usd_per_image", quality.usd_per_image);
  walk.member("usd_per_point", quality.usd_per_point, {.says = "what a point of FID less costs"});
  walk.member_if_any("checks", quality.checks, {.says = "evaluations on the way"});
  if (walk.takes(!quality.curve.empty())) walk.member("curve", quality.curve);
}

void describe(Walk& walk, PlanRow& row) {
  walk.member("provider", row.provider, kRequired);
  walk.member("region", row.region, kRequired);
  walk.member("market", row.market, kRequired);
  walk.member("instance", row.instance, kRequired);
  walk.member("nodes", row.nodes, {.low = 1, .required = true});
  walk.member("on_demand_nodes", row.on_demand_nodes, kCount);
  walk.member("gpus_per_node", row.gpus_per_node, kCount);
  walk.member("part_of_instance", row.part_of_instance);
  walk.member("gpu", row.gpu, kRequired);
  walk.member("gpus", row.gpus, {.low = 1, .required = true});
  walk.member_if_any("batch_per_gpu", row.batch_per_gpu, {.low = 1});
  walk.member("scheme", row.scheme);
  walk.member("policy", row.policy);
  walk.member("checkpoint", row.checkpoint, {.says = "its interval"});
  walk.member_if_any("usd_per_hour", row.usd_per_hour, {.says = "of all nodes"});
  if (row.usd_per_hour) walk.number_of("usd_per_hour_number", *row.usd_per_hour);
  walk.member("prices_as_of", row.prices_as_of);
  walk.member_if_any("price", row.price);
  walk.member("verdict", row.verdict,
              {.choices = {"meets", "misses", "too slow", "too dear", "too rare", "beaten", "impossible"}});
  walk.object("bounds",
              [&] {
                walk.member("time_s", row.bounds.low);
                walk.member("usd", row.bounds.high);
              },
              {.says = "the least time and cost that it can have"});
  walk.member_unless("owned", row.owned, {}, {.says = "what the price of a machine of one's own assumes"});
  walk.member_unless("reason", row.reason, {}, {.says = "why it fails"});
  if (!walk.takes(row.simulated())) return;
  walk.member("time_s", row.time_s, {.says = "of a candidate that was simulated, as what follows"});
  walk.member("usd", row.usd);
  walk.member("kg_co2e", row.kg_co2e);
  walk.member_if_any("quality", row.quality);
  walk.member("gpu_busy", row.gpu_busy, kShare);
  walk.member_if_any("images_per_s", row.images_per_s, {.says = "while it trains"});
  walk.member("losses_mean", row.losses_mean, {.says = "nodes lost, mean over the runs", .low = 0});
  walk.member_if_any("lost_s", row.lost_s, {.says = "work lost, mean over the runs", .low = 0});
  walk.member_if_any("saved_every_s", row.saved_every_s,
                     {.says = "between two checkpoints, mean over the runs; 0: none is written", .low = 0});
  walk.member("met_share", row.met_share, {.says = "share of the runs that keep the goals", .low = 0, .high = 1});
  walk.member_if_any("probability", row.probability,
                     {.says = "to keep the goals, with all stated error", .low = 0, .high = 1});
  walk.member_unless("probability_runs", row.probability_runs, 0,
                     {.says = "runs that it is the mean of, where they are more than `seeds`", .low = 0});
  walk.member("seeds", row.seeds, kCount);
  walk.member("never_finish", row.never_finish, kCount);
  walk.member("risk", row.risk, {.says = "as a result's"});
  walk.member("inputs", row.inputs, {.says = "as a result's"});
  walk.member("chosen", row.chosen);
  walk.member_unless("scenario", row.scenario, {}, {.says = "of the chosen candidate"});
  walk.member_if_any("warnings", row.warnings, {.says = "of the chosen candidate"});
}

void describe(Walk& walk, PlanRequest& request) {
  walk.member("model", request.model, kRequired);
  walk.member("trace", request.trace);
  walk.member("device", request.device);
  walk.member("batch_per_gpu", request.batch_per_gpu);
  walk.member("batches_per_gpu", request.batches_per_gpu);
  walk.member("images", request.images, {.says = "null where an FID is the goal"});
  walk.member("fid", request.fid);
  walk.member("deadline", request.deadline, {.says = "as it was asked for"});
  walk.member("deadline_s", request.deadline_s);
  walk.member("start", request.start);
  walk.member("budget_usd", request.budget);
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  walk.derived("budget_usd_number", request.budget ? usd_of(*request.budget) : kNone, {.unknown_is_null = true});
  walk.member("objective", request.objective, {.says = "what the plan minimizes"});
  walk.member("seeds", request.seeds, {.says = "runs of a candidate whose nodes may be lost"});
  walk.member("seeds_without_risk", request.seeds_without_risk);
  walk.member("certainty", request.certainty, {.says = "the probability that a candidate must have to meet the goals"});
  walk.member("sure", request.sure);
  walk.member("seed", request.seed);
  walk.member("schemes", request.schemes);
  walk.member("prices_aged_to", request.prices_aged_to, {.says = "the day from which prices' ages count"});
  walk.member("max_price_age_days", request.max_price_age_days);
  walk.member("catalogs", request.catalogs);
}

void describe(Walk& walk, PlanStep& step) {
  walk.member("gpu", step.gpu, kRequired);
  walk.member("batch_per_gpu", step.batch_per_gpu, kRequired);
  walk.member("seconds", step.seconds, kRequired);
  walk.member("interval_s", step.interval_s, kRequired);
  walk.member("inputs", step.inputs);
  walk.member("how", step.how);
}

void describe(Walk& walk, Plan::Searched& searched) {
  walk.member("candidates", searched.candidates);
  walk.member("too_slow", searched.too_slow);
  walk.member("too_dear", searched.too_dear);
  walk.member("too_rare", searched.too_rare);
  walk.member("beaten", searched.beaten);
  walk.member("impossible", searched.impossible);
  walk.member("simulated", searched.simulated);
  walk.member("meeting", searched.meeting);
  walk.member_unless("untried", searched.untried, {}, {.says = "that a search which ended early did not come to"});
}

void describe(Walk& walk, Plan::Cards& cards) {
  walk.member("cheapest", cards.cheapest, {.says = "the least that meets the goals", .required = true});
  walk.member("balanced", cards.balanced, {.says = "the best trade between time and money", .required = true});
  walk.member("safest", cards.safest, {.says = "the most probable, known risks first", .required = true});
}

void describe(Walk& walk, Plan::CannotRun& group) {
  walk.member("candidates", group.candidates);
  walk.member("reason", group.reason);
}

void describe(Walk& walk, Plan& plan) {
  walk.constant("schema", kPlanSchema, kRequired);
  walk.member("request", plan.request, kRequired);
  walk.member("effort", plan.effort,
              {.says = "how thorough the search was", .choices = {"quick", "normal", "exhaustive"}});
  walk.member("searched", plan.searched);
  walk.member("steps", plan.steps, {.says = "of one GPU by itself, for each GPU and batch that was simulated"});
  walk.member("chosen", plan.chosen);
  walk.member("cards", plan.cards);
  walk.member_if_any("more_money", plan.more_money, {.says = "what a little more money buys"});
  walk.member("best_of_known_risk", plan.best_of_known_risk);
  walk.member("best_of_each", plan.best_of_each, {.says = "provider and market"});
  walk.member("pareto", plan.pareto, {.says = "those that none beats in both time and cost"});
  walk.member("near_misses", plan.near_misses);
  walk.member("left_out", plan.left_out);
  walk.member("cannot_run", plan.cannot_run);
  walk.member("simulated", plan.simulated, kRequired);
  walk.member_unless("missed", plan.missed, {},
                     {.says = "further candidates that were simulated, with why each misses the goals"});
  walk.member_unless("asked", plan.asked, {}, {.says = "the request, from which the plan can be made again"});
  walk.object("provenance", [&] {
    walk.member("tool", plan.tool);
    walk.member("caveat", plan.caveat);
    walk.member_unless("request", plan.request_content, {});
    walk.member("files", plan.file_hashes);
  });
}

void describe(Walk& walk, Why::HangsOn& one) {
  walk.member("what", one.what, kRequired);
  walk.member("unit", one.unit, kRequired);
  walk.member("now", one.now);
  walk.member("tried", one.tried);
  walk.member("threshold", one.threshold, {.says = "null: the choice does not change up to `tried`"});
  walk.member("to", one.to, {.says = "what is chosen beyond it; null: nothing meets the goals"});
  walk.member("without", one.without, {.says = "why there is nothing to change"});
}

void describe(Walk& walk, Why& why) {
  walk.constant("schema", "ganymede.why/1", kRequired);
  walk.member("request", why.request, kRequired);
  walk.member("chosen", why.chosen, kRequired);
  walk.member("steps", why.steps);
  walk.member("hangs_on", why.hangs_on, kRequired);
  walk.object("provenance", [&] { walk.member("tool", why.tool); });
}

std::string plan_text(const Plan& plan) { return written(described(plan)).dump(2) + "\n"; }
std::string why_text(const Why& why) { return written(described(why)).dump(2) + "\n"; }
OrderedJson row_json(const PlanRow& row) { return written(described(row)); }

Plan read_plan(const JsonNode& node) {
  Plan plan;
  read(node, described(plan), kReading);
  return plan;
}
Plan plan_in(const Json& value) { return read_plan(JsonNode::wrap(value, "plan", {})); }

Why why_in(const Json& value) {
  Why why;
  read(JsonNode::wrap(value, "why", {}), described(why), kReading);
  return why;
}

}  // namespace ganymede::documents
