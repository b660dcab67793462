#include "documents/machine_checks.hpp"

#include "common/json_value.hpp"
#include "documents/forms.hpp"

namespace ganymede::documents {

void describe(Walk& walk, FitsKind& kind) {
  walk.member("name", kind.name, kRequired);
  walk.member("bytes", kind.bytes, {.low = 0, .required = true});
}

void describe(Walk& walk, FitsMemory& memory) {
  walk.member("bytes", memory.bytes, {.says = "expected", .low = 0, .required = true});
  walk.member("interval", memory.interval, {.says = "90 %", .required = true});
}

void describe(Walk& walk, FitsGpu& gpu) {
  walk.member("gpu", gpu.gpu, kRequired);
  walk.member("memory_bytes", gpu.memory, {.low = 0, .required = true});
  walk.member("largest_batch", gpu.largest_batch,
              {.says = "images on one GPU that fit at the upper end of the interval; 0: not one", .low = 0});
  walk.member("perhaps_batch", gpu.perhaps_batch, {.says = "that fit as expected, and may not", .low = 0});
  walk.member_if_any("memory", gpu.at_batch, {.says = "at the batch of the document"});
  walk.member_if_any(
      "verdict", gpu.at_verdict,
      {.says = "on that batch: fits at the upper end, perhaps as expected", .choices = {"fits", "perhaps", "no"}});
}

void describe(Walk& walk, Fits& fits) {
  walk.constant("schema", kFitsSchema, kRequired);
  walk.member("model", fits.model, kRequired);
  walk.member("trace", fits.trace, {.says = "where its memory is from"});
  walk.member("precision", fits.precision);
  walk.member("how", fits.how, {.says = "how the memory was found, a sentence"});
  walk.member("batch", fits.batch, {.says = "images on one GPU, of the memory by kind", .low = 1, .required = true});
  walk.member("several_gpus", fits.several_gpus, {.says = "with the buckets that a training on several GPUs has"});
  walk.member("kinds", fits.kinds, {.says = "memory by kind, at the peak of a step"});
  walk.member("allocated_bytes", fits.allocated,
              {.says = "without fragmentation and context: what torch.cuda.max_memory_allocated() shows", .low = 0});
  walk.member("total", fits.total, {.says = "of all kinds, on the first of the GPUs"});
  walk.member("gpus", fits.gpus);
}

std::string fits_text(const Fits& fits) { return written(described(fits)).dump(2) + "\n"; }

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
  walk.member("verdict", check.verdict, {.required = true, .choices = {"faster", "normal", "low", "broken"}});
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
  walk.member("verdict", answer.verdict, {.required = true, .choices = {"faster", "as expected", "slow", "trace"}});
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
