#include "kernel/session/draw_images.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "common/errors.hpp"
#include "kernel/models/models.hpp"
#include "kernel/samples.hpp"
#include "kernel/weights.hpp"

namespace ganymede::kernel {

namespace {

/// The networks of the last step that was done, without memory.
Gan built_gan(const Checkpoint& checkpoint) {
  const Metadata metadata = checkpoint.metadata();
  const Model& model = find_model(metadata.text("model"));
  const ImageShape image = find_image(model, metadata.text("image"));
  if (model.build_default().takes_images())
    throw ConfigError(
        fmt::format("{}: found {}, which makes images of images, expected a model that draws them from random numbers; "
                    "`ganymede train --samples` shows what it has learned",
                    checkpoint.file, model.name));
  const std::int64_t steps_before = std::max<std::int64_t>(0, metadata.number("steps", 0) - 1);
  return model.build(image, stage_after(model, image, steps_before, metadata.number("stage-steps", 0)).growth);
}

}  // namespace

DrawnImages draw_images(const Checkpoint& checkpoint, const TrainOptions& train, int count, std::uint64_t seed,
                        std::optional<int> only) {
  using Clock = std::chrono::steady_clock;
  constexpr int kMostAtOnce = 64;
  const auto backend = make_backend(train);
  Gan gan = built_gan(checkpoint);
  if (only && (*only < 0 || *only >= gan.classes))
    throw ConfigError(fmt::format("--class: found {}, expected {}", *only,
                                  gan.classes == 0 ? fmt::format("none: {} learns no classes", gan.model)
                                                   : fmt::format("0 to {} for {}", gan.classes - 1, gan.model)));
  DrawnImages drawn{.model = gan.model, .png = {}, .backend = backend->info, .batch = std::min(count, kMostAtOnce)};
  const GanOptions options{.average = holds_average(checkpoint.content)};
  for (const auto& [kind, bytes] : gan.planned_memory_bytes(*backend->ops, drawn.batch, options))
    drawn.memory_bytes += bytes;
  gan.prepare(*backend->ops, drawn.batch, 0, options);
  set_tensors(gan, *backend->ops, checkpoint.content, true, checkpoint.file);
  const auto begin = Clock::now();
  drawn.png = sample_grid(gan, *backend->ops, seed, count, only);
  drawn.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  return drawn;
}

ImageMaker::ImageMaker(const Checkpoint& checkpoint, const TrainOptions& train, int largest_batch)
    : backend_(make_backend(train)), steps_(checkpoint.metadata().number("steps", 0)) {
  const GanOptions options{.average = holds_average(checkpoint.content)};
  for (int batch = 1;; batch = std::min(2 * batch, largest_batch)) {
    Gan& gan = gans_.emplace(batch, built_gan(checkpoint)).first->second;
    gan.prepare(*backend_->ops, batch, 0, options);
    set_tensors(gan, *backend_->ops, checkpoint.content, true, checkpoint.file);
    if (batch == largest_batch) return;
  }
}

std::vector<std::string> ImageMaker::draw(std::span<const std::uint64_t> seeds) {
  Gan& gan = gans_.lower_bound(static_cast<int>(seeds.size()))->second;
  TensorOps& ops = *backend_->ops;
  const auto batch = static_cast<std::size_t>(gan.batch), size = static_cast<std::size_t>(gan.latent.features);
  std::vector<float> latents(size * batch), one(size);  // [size x batch]
  for (std::size_t i = 0; i < seeds.size(); ++i) {
    RandomStream(seeds[i], "kernel/samples").fill_normal(one);
    for (std::size_t row = 0; row < size; ++row) latents[row * batch + i] = one[row];
  }
  const int count = static_cast<int>(seeds.size());
  const auto fill = [&](int) {
    ops.write(gan.latent, latents);
    gan.place_classes(
        ops, [&](int i) { return class_of_seed(gan, seeds[std::min(static_cast<std::size_t>(i), seeds.size() - 1)]); });
  };
  const std::vector<float> images = sample_images(gan, ops, fill, count);
  const auto pixels = static_cast<std::ptrdiff_t>(gan.image.pixels());
  std::vector<std::string> pngs;
  for (int i = 0; i < count; ++i)
    pngs.push_back(png_of(gan, {images.begin() + i * pixels, images.begin() + (i + 1) * pixels}, 1));
  return pngs;
}

}  // namespace ganymede::kernel
