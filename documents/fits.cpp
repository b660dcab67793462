#include "documents/fits.hpp"

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

}  // namespace ganymede::documents
