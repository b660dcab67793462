#include "kernel/session/draw_images.hpp"

#include <algorithm>
#include <chrono>

#include "kernel/image_grid.hpp"
#include "kernel/models/models.hpp"
#include "kernel/weights.hpp"

namespace ganymede::kernel {

DrawnImages draw_images(const Checkpoint& checkpoint, const TrainOptions& train, int count, std::uint64_t seed) {
  using Clock = std::chrono::steady_clock;
  constexpr int kMostAtOnce = 64;
  const Metadata metadata = checkpoint.metadata();
  const Model& model = find_model(metadata.text("model"));
  const auto backend = make_backend(train);
  const ImageShape image = find_image(model, metadata.text("image"));
  // The checkpoint holds the networks of the last step that was done.
  const std::int64_t steps_before = std::max<std::int64_t>(0, metadata.number("steps", 0) - 1);
  Gan gan = model.build(image, stage_after(model, image, steps_before, metadata.number("stage-steps", 0)).growth);
  DrawnImages drawn{.model = gan.model, .png = {}, .backend = backend->info, .batch = std::min(count, kMostAtOnce)};
  const GanOptions options{.average = holds_average(checkpoint.content)};
  for (const auto& [kind, bytes] : gan.planned_memory_bytes(*backend->ops, drawn.batch, options))
    drawn.memory_bytes += bytes;
  gan.prepare(*backend->ops, drawn.batch, 0, options);
  set_tensors(gan, *backend->ops, checkpoint.content, true, checkpoint.file);
  const auto begin = Clock::now();
  drawn.png = sample_grid(gan, *backend->ops, seed, count);
  drawn.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  return drawn;
}

}  // namespace ganymede::kernel
