#include "documents/link_check.hpp"

#include "common/json_value.hpp"
#include "documents/forms.hpp"

namespace ganymede::documents {

void describe(Walk& walk, CheckedSize& size) {
  walk.member("bytes", size.bytes, {.low = 1, .required = true});
  walk.member("measured_s", size.measured, {.low = 0, .required = true});
  walk.member("expected_s", size.expected, {.low = 0, .required = true});
  walk.member("interval_s", size.interval, {.says = "90 % of the expected time"});
  walk.member("measured_busbw_GBps", size.measured_bus, {.says = "as in nccl-tests, GB = 1e9 bytes", .low = 0});
  walk.member("expected_busbw_GBps", size.expected_bus, kCount);
}

void describe(Walk& walk, LikelyCause& cause) {
  walk.member("cause", cause.cause, {.says = "normal, unexplained, noise, or what is wrong", .required = true});
  walk.member("says", cause.says, {.says = "the same as a sentence"});
  walk.member("shows", cause.shows, {.says = "what would show it"});
  walk.member("probability", cause.share, {.says = "of all causes that were tried", .low = 0, .high = 1});
  walk.member("against_normal", cause.against_normal,
              {.says = "its likelihood over that of \"normal\"", .low = 0, .unknown_is_null = true});
  walk.member_if_any("busbw_GBps", cause.bus, {.says = "what it would give at the largest size", .low = 0});
  walk.member_unless("sign", cause.sign, std::string(), {.says = "the log's own words that speak for it"});
}

void describe(Walk& walk, LinkCheck& check) {
  walk.constant("schema", kLinkCheckSchema, kRequired);
  walk.member("verdict", check.verdict, {.required = true, .choices = {"normal", "low", "broken"}});
  walk.member("log", check.log);
  walk.member("collective", check.collective);
  walk.member("scheme", check.scheme, {.says = "that is expected, as `allreduce --scheme` takes it"});
  walk.member("catalog", check.catalog);
  walk.member("instance", check.instance);
  walk.member("recognised", check.recognised, {.says = "how the machine was found"});
  walk.member("links", check.links, {.says = "how sure the expected links are"});
  walk.member("nodes", check.nodes, {.low = 1});
  walk.member("gpus_per_node", check.gpus_per_node, {.low = 1});
  walk.member("ratio", check.ratio, {.says = "measured over expected bandwidth of large sizes", .low = 0});
  walk.member("interval", check.interval, {.says = "90 % of that ratio on machines where nothing is wrong"});
  walk.member("sizes", check.sizes);
  walk.member("causes", check.causes, {.says = "the likeliest first"});
  walk.member("notes", check.notes);
}

std::string link_check_text(const LinkCheck& check) { return written(described(check)).dump(2) + "\n"; }

}  // namespace ganymede::documents
