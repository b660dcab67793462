#include "documents/difference.hpp"

#include "common/json_value.hpp"
#include "documents/forms.hpp"

namespace ganymede::documents {
namespace {

/// A value of any type.
const About kAnyValue = {.says = "null: not there", .unknown_is_null = true};

}  // namespace

void describe(Walk& walk, Difference::Side& side) {
  walk.member("file", side.file, kRequired);
  walk.member("subject", side.subject, {.says = "what it is about", .required = true});
}

void describe(Walk& walk, Difference::Known& known) {
  walk.member("value", known.value, {.says = "null: not known"});
  walk.member("interval", known.interval);
}

void describe(Walk& walk, Difference::Quantity& quantity) {
  walk.member("what", quantity.what, kRequired);
  walk.member("unit", quantity.unit, kRequired);
  walk.member("before", quantity.before);
  walk.member("after", quantity.after);
  walk.member("change", quantity.change);
  walk.member("relative", quantity.relative, {.says = "0.1 is 10 % more"});
  walk.member("within_error", quantity.within_error, {.says = "whether the intervals overlap"});
}

void describe(Walk& walk, Difference::Input& input) {
  walk.member("kind", input.kind, {.required = true, .choices = {"field", "file", "option", "price", "program"}});
  walk.member("pointer", input.pointer,
              {.says = "of a field or file, from the scenario or request; of the others, in the document"});
  walk.member("name", input.name);
  walk.member("before", input.before, kAnyValue);
  walk.member("after", input.after, kAnyValue);
}

void describe(Walk& walk, Difference::Limit& limit) {
  walk.member("what", limit.what, kRequired);
  walk.member("most", limit.most, {.says = "0.1: at most 10 % more"});
  walk.member("held", limit.held);
}

void describe(Walk& walk, Difference& difference) {
  walk.constant("schema", kDifferenceSchema, kRequired);
  walk.member("of", difference.compares, {.required = true, .choices = {"results", "plans"}});
  walk.member("before", difference.before, kRequired);
  walk.member("after", difference.after, kRequired);
  walk.member("over_seeds", difference.over_seeds, {.says = "time and cost are medians over seeds"});
  walk.member("quantities", difference.quantities, kRequired);
  walk.member("inputs_recorded", difference.inputs_recorded,
              {.says = "false: a document of an earlier program does not hold its scenario or request"});
  walk.member("inputs", difference.inputs, {.says = "what differs between them"});
  walk.member("limits", difference.limits, {.says = "of `--fail-on`"});
  walk.member("held", difference.held, {.says = "all limits are"});
}

OrderedJson difference_json(const Difference& difference) { return written(described(difference)); }

}  // namespace ganymede::documents
