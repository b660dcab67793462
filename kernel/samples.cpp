#include "kernel/samples.hpp"

#include <algorithm>
#include <cassert>

namespace ganymede::kernel {
namespace {

/// Replaces the generator's parameters by their average for the object's lifetime.
class WithAverage {
 public:
  WithAverage(Gan& gan, TensorOps& ops) : gan_(gan), ops_(ops) {
    if (!gan.has_average()) return;
    kept_ = ops.allocate(gan.generator.parameter_bytes());
    ops.copy(kept_.floats(), gan.generator.parameter_data(), gan.generator.parameter_floats());
    ops.copy(gan.generator.parameter_data(), gan.average.floats(), gan.generator.parameter_floats());
  }
  ~WithAverage() {
    if (gan_.has_average())
      ops_.copy(gan_.generator.parameter_data(), kept_.floats(), gan_.generator.parameter_floats());
  }
  WithAverage(const WithAverage&) = delete;
  WithAverage& operator=(const WithAverage&) = delete;

 private:
  Gan& gan_;
  TensorOps& ops_;
  Buffer kept_;
};

}  // namespace

std::vector<float> sample_images(Gan& gan, TensorOps& ops, std::uint64_t seed, int count) {
  RandomStream latents(seed, "kernel/samples");
  return sample_images(
      gan, ops, [&] { ops.fill_normal(gan.latent, latents); }, count);
}

std::vector<float> sample_images(Gan& gan, TensorOps& ops, const std::function<void()>& fill, int images_wanted) {
  const auto count = static_cast<std::size_t>(images_wanted);
  const auto pixels = static_cast<std::size_t>(gan.image.pixels()), batch = static_cast<std::size_t>(gan.batch);
  const WithAverage average(gan, ops);
  std::vector<float> images(count * pixels), generated(pixels * batch);  // `generated` is [pixels x batch]
  for (std::size_t done = 0; done < count; done += batch) {
    fill();
    ops.read_rows(generated, gan.generator.infer(ops, gan.latent), gan.channels());
    for (std::size_t i = 0; i < std::min(batch, count - done); ++i)
      for (std::size_t p = 0; p < pixels; ++p)
        images[(done + i) * pixels + p] = (generated[p * batch + i] - gan.darkest) / (1 - gan.darkest);
  }
  return images;
}

std::vector<float> enlarge(const std::vector<float>& images, ImageShape from, ImageShape to) {
  if (from == to) return images;
  assert(to.height % from.height == 0 && to.width % from.width == 0 && to.frames % from.frames == 0);
  const auto extent = [](int value) { return static_cast<std::size_t>(value); };
  const std::size_t count = images.size() / extent(from.pixels());
  std::vector<float> large;
  large.reserve(count * extent(to.pixels()));
  for (std::size_t plane = 0; plane < count * extent(to.channels); ++plane)
    for (int f = 0; f < to.frames; ++f)
      for (int y = 0; y < to.height; ++y)
        for (int x = 0; x < to.width; ++x) {
          const std::size_t frame = plane * extent(from.frames) + extent(f * from.frames / to.frames);
          const std::size_t row = frame * extent(from.height) + extent(y * from.height / to.height);
          large.push_back(images[row * extent(from.width) + extent(x * from.width / to.width)]);
        }
  return large;
}

}  // namespace ganymede::kernel
