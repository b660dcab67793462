#include "documents/why_slow.hpp"

#include "common/json_value.hpp"
#include "documents/forms.hpp"

namespace ganymede::documents {

void describe(Walk& walk, SlowShare& share) {
  walk.member("part", share.part, kRequired);
  walk.member("says", share.says);
  walk.member("seconds", share.seconds, {.says = "of a step"});
  walk.member("share", share.share);
}

void describe(Walk& walk, SlowCause& cause) {
  walk.member("cause", cause.cause, kRequired);
  walk.member("says", cause.says, {.says = "the same as a sentence"});
  walk.member("shows", cause.shows, {.says = "what would show or mend it"});
  walk.member("probability", cause.probability, {.says = "of all causes that were tried", .low = 0, .high = 1});
  walk.member_if_any("images_per_second", cause.rate, {.says = "that it alone explains", .low = 0});
  walk.member_if_any("mended_images_per_second", cause.mended, {.says = "once it is mended", .low = 0});
  walk.member_if_any("saved_hours", cause.saved_hours, {.says = "for the images of the answer"});
  walk.member_if_any("saved_usd", cause.saved_usd);
}

void describe(Walk& walk, WhySlow& answer) {
  walk.constant("schema", kWhySlowSchema, kRequired);
  walk.member("verdict", answer.verdict, {.required = true, .choices = {"as expected", "slow", "trace"}});
  walk.member("catalog", answer.catalog);
  walk.member("instance", answer.instance);
  walk.member("recognised", answer.recognised, {.says = "how the machine was found"});
  walk.member("of", answer.of, {.says = "whose gradients and batch are taken"});
  walk.member("gpus", answer.gpus, {.low = 1});
  walk.member("nodes", answer.nodes, {.low = 1});
  walk.member("batch", answer.batch, {.says = "images on one GPU in a step; 0: not known", .low = 0});
  walk.member("parameters", answer.parameters, kCount);
  walk.member("images", answer.images, {.says = "for which time and dollars are saved", .low = 0});
  walk.member("one_images_per_second", answer.one, kCount);
  walk.member("all_images_per_second", answer.all, kCount);
  walk.member("efficiency", answer.efficiency, {.says = "of all, over one GPU times their number", .low = 0});
  walk.member("expected_images_per_second", answer.expected, {.says = "where nothing is wrong", .low = 0});
  walk.member("interval", answer.interval, {.says = "90 % of the expected rate"});
  walk.member("usd_per_hour", answer.usd_per_hour, {.says = "of all nodes, on demand; 0: not known", .low = 0});
  walk.member("shares", answer.shares, {.says = "the parts of a step"});
  walk.member("causes", answer.causes, {.says = "the likeliest first"});
  walk.member("notes", answer.notes);
}

std::string why_slow_text(const WhySlow& answer) { return written(described(answer)).dump(2) + "\n"; }

}  // namespace ganymede::documents
