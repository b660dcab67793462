#include "kernel/image_grid.hpp"

#include <fmt/format.h>
#include <png.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <vector>

#include "common/errors.hpp"

namespace ganymede::kernel {
namespace {

constexpr int kGap = 1;
constexpr std::uint8_t kGapGrey = 64;

std::string encode_png(const std::vector<std::uint8_t>& pixels, int width, int height, int channels) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<png_uint_32>(width);
  image.height = static_cast<png_uint_32>(height);
  image.format = channels == 3 ? PNG_FORMAT_RGB : PNG_FORMAT_GRAY;
  png_alloc_size_t size = 0;
  std::string bytes;
  if (png_image_write_to_memory(&image, nullptr, &size, 0, pixels.data(), 0, nullptr) != 0) {
    bytes.resize(size);
    if (png_image_write_to_memory(&image, bytes.data(), &size, 0, pixels.data(), 0, nullptr) != 0) {
      bytes.resize(size);
      return bytes;
    }
  }
  throw Failure(fmt::format("libpng: {}", static_cast<const char*>(image.message)));
}

}  // namespace

std::string png_grid(std::span<const float> images, ImageShape shape, int rows, int columns) {
  const auto size = [](int extent) { return static_cast<std::size_t>(extent); };
  const std::size_t row_bytes = size(shape.width) * size(shape.channels), image_floats = size(shape.height) * row_bytes;
  const std::size_t count = images.size() / image_floats;
  assert(images.size() == count * image_floats && count <= size(rows) * size(columns));
  const int width = columns * (shape.width + kGap) + kGap, height = rows * (shape.height + kGap) + kGap;
  const std::size_t picture_row = size(width) * size(shape.channels);
  std::vector<std::uint8_t> picture(size(height) * picture_row, kGapGrey);
  for (int cell = 0; size(cell) < count; ++cell) {
    const int top = cell / columns * (shape.height + kGap) + kGap, left = cell % columns * (shape.width + kGap) + kGap;
    const float* from = images.data() + size(cell) * image_floats;
    for (int y = 0; y < shape.height; ++y) {
      std::uint8_t* to = picture.data() + size(top + y) * picture_row + size(left) * size(shape.channels);
      for (std::size_t x = 0; x < row_bytes; ++x)
        to[x] = static_cast<std::uint8_t>(std::lround(std::clamp(*from++, 0.0F, 1.0F) * 255.0F));
    }
  }
  return encode_png(picture, width, height, shape.channels);
}

std::string sample_grid(Gan& gan, Ops& ops, std::uint64_t seed, int images_wanted) {
  const auto count = static_cast<std::size_t>(images_wanted);
  const int columns = static_cast<int>(std::ceil(std::sqrt(static_cast<double>(images_wanted))));
  const int rows = (images_wanted + columns - 1) / columns;
  const auto pixels = static_cast<std::size_t>(gan.image.pixels()), batch = static_cast<std::size_t>(gan.batch);
  const auto channels = static_cast<std::size_t>(gan.image.channels), positions = pixels / channels;
  // The average stands in for the generator's parameters meanwhile.
  Network& generator = gan.generator;
  const std::size_t parameters = generator.parameter_count();
  const Buffer kept = gan.has_average() ? ops.allocate(generator.gradient_bytes()) : Buffer{};
  if (gan.has_average()) {
    ops.copy(kept.floats(), generator.parameter_data(), parameters);
    ops.copy(generator.parameter_data(), gan.average.floats(), parameters);
  }
  RandomStream latents(seed, "kernel/samples");
  std::vector<float> images(count * pixels), generated(pixels * batch);  // [count x pixels], [pixels x batch]
  for (std::size_t done = 0; done < count; done += batch) {
    ops.fill_normal(gan.latent, latents);
    ops.read(generated, gan.generator.infer(ops, gan.latent).data);
    // From [channels x positions x batch] in [darkest, 1] to [image x positions x channels] in [0, 1].
    for (std::size_t i = 0; i < std::min(batch, count - done); ++i)
      for (std::size_t c = 0; c < channels; ++c)
        for (std::size_t p = 0; p < positions; ++p)
          images[(done + i) * pixels + p * channels + c] =
              (generated[(c * positions + p) * batch + i] - gan.darkest) / (1 - gan.darkest);
  }
  if (gan.has_average()) ops.copy(generator.parameter_data(), kept.floats(), parameters);
  return png_grid(images, gan.image, rows, columns);
}

}  // namespace ganymede::kernel
