#include "documents/paid_bill.hpp"

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

}  // namespace ganymede::documents
