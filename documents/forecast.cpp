#include "documents/forecast.hpp"

#include "common/json_value.hpp"
#include "documents/forms.hpp"

namespace ganymede::documents {

void describe(Walk& walk, PaidItem& item) {
  walk.member("item", item.item, kRequired);
  walk.member("unit", item.unit, {.says = "of both quantities; empty: none, or several"});
  walk.member("planned", item.planned, {.says = "quantity"});
  walk.member("paid", item.paid, {.says = "quantity"});
  walk.member("planned_usd", item.planned_usd);
  walk.member("paid_usd", item.paid_usd);
  walk.member("difference_usd", item.difference_usd, {.says = "paid less planned"});
  walk.member("why", item.why, {.says = "what the difference comes from"});
}

void describe(Walk& walk, PaidBill& paid) {
  walk.constant("schema", kPaidBillSchema, kRequired);
  walk.member("plan", paid.plan);
  walk.member("bill", paid.bill);
  walk.member("dialect", paid.dialect, {.choices = {"FOCUS", "AWS CUR", "AWS CUR 2.0"}});
  walk.member("instance", paid.instance, {.says = "that the plan rents"});
  walk.member("nodes", paid.nodes, {.low = 1});
  walk.member("from", paid.from, {.says = "the first time of the bill; empty: it states none"});
  walk.member("to", paid.to);
  walk.member("rows", paid.rows, {.says = "of the bill", .low = 0});
  walk.member("skipped", paid.skipped, {.says = "rows that could not be read", .low = 0});
  walk.member("outside", paid.outside, {.says = "rows that are not of the training's tag, resource or time", .low = 0});
  walk.member("planned_usd", paid.planned_usd, {.says = "by one run with the plan's seed, whose items these are"});
  walk.member("plan_usd", paid.plan_usd, {.says = "the plan's own figure: the median of its runs"});
  walk.member("plan_interval_usd", paid.plan_interval_usd, {.says = "90 %"});
  walk.member("paid_usd", paid.paid_usd);
  walk.member("items", paid.items, {.says = "the largest difference first"});
  walk.member("notes", paid.notes);
}

std::string paid_bill_text(const PaidBill& paid) { return written(described(paid)).dump(2) + "\n"; }

void describe(Walk& walk, WatchedQuality& quality) {
  walk.member("fid", quality.fid, {.says = "the plan's goal"});
  walk.member("points", quality.points, {.says = "of the log", .low = 0});
  walk.member("reached", quality.reached);
  walk.member("best_seen", quality.best_seen, {.says = "the lowest FID of the log"});
  walk.member("probability", quality.probability, kShare);
  walk.member("images", quality.images, {.says = "real images until then; null: it may never get there"});
  walk.member("time_s", quality.time_s);
  walk.member("usd", quality.usd);
  walk.member("curve", quality.curve);
  walk.member("notes", quality.notes);
}

void describe(Walk& walk, WatchedDecision::Pool& pool) {
  walk.member("pool", pool.pool, kRequired);
  walk.member("nodes", pool.nodes, kCount);
  walk.member("nodes_now", pool.nodes_now, kCount);
}

void describe(Walk& walk, WatchedDecision& decision) {
  walk.member("policy", decision.policy, kRequired);
  walk.member("changes", decision.changes);
  walk.member("pause", decision.pause);
  walk.member("pools", decision.pools);
}

void describe(Walk& walk, Forecast::Deadline& deadline) {
  walk.member("seconds", deadline.seconds, {.says = "null: the plan has none"});
  walk.member("probability", deadline.probability, {.says = "to meet it", .low = 0, .high = 1});
  walk.member("certainty", deadline.certainty, {.says = "that the plan asked for", .low = 0, .high = 1});
}

void describe(Walk& walk, Forecast& forecast) {
  walk.constant("schema", kForecastSchema, kRequired);
  walk.member("log", forecast.log, {.says = "the file of the run"});
  walk.member("plan", forecast.plan, {.says = "the file of the plan"});
  walk.member("model", forecast.model);
  walk.member("instance", forecast.instance, kRequired);
  walk.member("nodes", forecast.nodes, {.low = 1});
  walk.member("gpus", forecast.gpus, {.low = 1});
  walk.member("state", forecast.state, {.required = true, .choices = {"running", "finished", "stopped"}});
  walk.member("resumptions", forecast.resumptions, kCount);
  walk.member("cut_lines", forecast.cut_lines,
              {.says = "lines of the log that a crash cut short, which are skipped", .low = 0});
  walk.member("steps_done", forecast.steps_done, kAmount);
  walk.member("steps", forecast.steps, {.says = "of the whole run", .low = 0, .required = true});
  walk.member("done_share", forecast.done_share, kCount);
  walk.member("last_line_unix_s", forecast.last_line_unix_s, {.says = "Unix time of the log's last line"});
  walk.member("setup_s", forecast.setup_s,
              {.says = "until the first step, as the plan's platform states it; the log's times are added", .low = 0});
  walk.member("elapsed_s", forecast.elapsed_s, {.says = "since the nodes were asked for", .low = 0, .required = true});
  walk.member("paused_s", forecast.paused_s, {.says = "evaluations, checkpoints and interruptions", .low = 0});
  walk.member("step_s", forecast.step_s,
              {.says = "for the rest of the run, by the log, or the plan's before it times one; of a growing model, of "
                       "mean work"});
  walk.member("step_is_measured", forecast.step_is_measured);
  walk.member("plan_step_s", forecast.plan_step_s);
  walk.member("time_s", forecast.time_s, {.says = "of the whole run", .required = true});
  walk.member("plan_time_s", forecast.plan_time_s, kRequired);
  walk.member("ends_at", forecast.ends_at, {.says = "date and time in UTC"});
  walk.member("usd_per_hour", forecast.usd_per_hour, {.says = "of the plan's nodes", .low = 0});
  walk.member("spent_usd", forecast.spent_usd, {.says = "what they cost so far", .low = 0, .required = true});
  walk.member("usd", forecast.usd, {.says = "the bill at the end", .required = true});
  walk.member("plan_usd", forecast.plan_usd, kRequired);
  walk.member("quality", forecast.quality, {.says = "where the plan's FID is reached by the log's points"});
  walk.member("deadline", forecast.deadline, kRequired);
  walk.member("decision", forecast.decision, {.says = "what the plan's policy would hold now; null after the end"});
  walk.member("warnings", forecast.warnings);
  walk.member_if_any("bill", forecast.bill, {.says = "a ganymede.paid-bill/1, with --bill"});
}

OrderedJson forecast_json(const Forecast& forecast) { return written(described(forecast)); }

}  // namespace ganymede::documents
