#include "kernel/samples.hpp"

#include <fmt/format.h>
#include <png.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <vector>

#include "common/errors.hpp"

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

std::vector<float> sample_images(Gan& gan, TensorOps& ops, std::uint64_t seed, int count, std::optional<int> only) {
  RandomStream latents(seed, "kernel/samples");
  const auto fill = [&](int first) {
    ops.fill_normal(gan.latent, latents);
    gan.place_classes(
        ops, [&](int i) { return only.value_or(class_of_seed(gan, seed + static_cast<unsigned>(first + i))); });
  };
  return sample_images(gan, ops, fill, count);
}

std::vector<float> sample_images(Gan& gan, TensorOps& ops, const std::function<void(int)>& fill, int images_wanted) {
  const auto count = static_cast<std::size_t>(images_wanted);
  const auto pixels = static_cast<std::size_t>(gan.image.pixels()), batch = static_cast<std::size_t>(gan.batch);
  const WithAverage average(gan, ops);
  std::vector<float> images(count * pixels), generated(pixels * batch);  // `generated` is [pixels x batch]
  for (std::size_t done = 0; done < count; done += batch) {
    fill(static_cast<int>(done));
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

std::string png_grid(std::span<const float> images, ImageShape shape, int rows, int columns, int gap) {
  const auto size = [](int extent) { return static_cast<std::size_t>(extent); };
  const std::size_t row_bytes = size(shape.width) * size(shape.channels), image_floats = size(shape.height) * row_bytes;
  const std::size_t count = images.size() / image_floats;
  assert(images.size() == count * image_floats && count <= size(rows) * size(columns));
  const int width = columns * (shape.width + gap) + gap, height = rows * (shape.height + gap) + gap;
  const std::size_t picture_row = size(width) * size(shape.channels);
  std::vector<std::uint8_t> picture(size(height) * picture_row, kGapGrey);
  for (int cell = 0; size(cell) < count; ++cell) {
    const int top = cell / columns * (shape.height + gap) + gap, left = cell % columns * (shape.width + gap) + gap;
    const float* from = images.data() + size(cell) * image_floats;
    for (int y = 0; y < shape.height; ++y) {
      std::uint8_t* to = picture.data() + size(top + y) * picture_row + size(left) * size(shape.channels);
      for (std::size_t x = 0; x < row_bytes; ++x)
        to[x] = static_cast<std::uint8_t>(std::lround(std::clamp(*from++, 0.0F, 1.0F) * 255.0F));
    }
  }
  return encode_png(picture, width, height, shape.channels);
}

std::string sample_grid(Gan& gan, TensorOps& ops, std::uint64_t seed, int count, std::optional<int> only) {
  return png_of(gan, sample_images(gan, ops, seed, count, only), count, 1);
}

std::string translation_grid(Gan& gan, TensorOps& ops, const ReadDomain& read, int count) {
  constexpr int kViews = 3;  // the image, its translation, and back
  const auto extent = [](int value) { return static_cast<std::size_t>(value); };
  const WithAverage average(gan, ops);
  const Tensor images = gan.direction;  // free between steps
  const std::vector<int> domains = gan.reduction > 1 ? std::vector{0} : std::vector{0, 1};
  const int columns = kViews * static_cast<int>(domains.size());
  const std::size_t values = extent(gan.image.pixels()), channels = extent(gan.image.channels),
                    batch = extent(gan.batch);
  std::vector<std::uint8_t> bytes(values);
  std::vector<float> rows(images.size()), cells(extent(columns * count) * values);
  const auto take = [&](int first, int column) {
    for (std::size_t i = 0; i < batch && first + static_cast<int>(i) < count; ++i) {
      float* cell = cells.data() + ((extent(first) + i) * extent(columns) + extent(column)) * values;
      for (std::size_t v = 0; v < values; ++v) {  // PNGs have a pixel's channels together
        const std::size_t row = v % channels * (values / channels) + v / channels;
        cell[v] = (rows[row * batch + i] - gan.darkest) / (1 - gan.darkest);
      }
    }
  };
  for (int first = 0; first < count; first += gan.batch)
    for (const int domain : domains) {
      for (int i = 0; i < gan.batch; ++i) {
        read(domain, std::min(first + i, count - 1), bytes.data());
        for (std::size_t v = 0; v < values; ++v)
          rows[v * batch + extent(i)] = gan.darkest + (1 - gan.darkest) * static_cast<float>(bytes[v]) / 255.0F;
      }
      ops.write_rows(images, rows, gan.channels());
      take(first, kViews * domain + (gan.reduction > 1 ? 2 : 0));
      if (gan.reduction > 1) {
        ops.pool(gan.latent, images, gan.reduced(), 1.0F / static_cast<float>(gan.reduced().elements()));
        ops.upsample(images, gan.latent, gan.reduced(), 1);
        ops.read_rows(rows, images, gan.channels());
        take(first, 0);
        ops.read_rows(rows, gan.generator.infer(ops, gan.latent), gan.channels());
        take(first, 1);
        continue;
      }
      Tensor x = images;
      for (const int view : {1, 2}) {
        x = gan.generator.infer(ops, x, extent(view == 1 ? domain : 1 - domain));
        ops.read_rows(rows, x, gan.channels());
        take(first, kViews * domain + view);
      }
    }
  return png_grid(cells, gan.image, count, columns);
}

std::string png_of(const Gan& gan, const std::vector<float>& samples, int count, int gap) {
  const ImageShape shape{gan.whole.height, gan.whole.width, gan.whole.channels};
  const int frames = gan.image.frames;
  // Images of a growing model are enlarged to their final size; frames of a clip stand side by side.
  const ImageShape enlarged{shape.height, shape.width, shape.channels, frames};
  const std::vector<float> images = enlarge(samples, gan.image, enlarged);
  const auto extent = [](int value) { return static_cast<std::size_t>(value); };
  const std::size_t plane = extent(shape.height * shape.width), channels = extent(shape.channels);
  std::vector<float> cells(images.size());  // [clip x frame x position x channel]
  auto cell = cells.begin();
  for (std::size_t clip = 0; clip < extent(count); ++clip)
    for (std::size_t f = 0; f < extent(frames); ++f)
      for (std::size_t p = 0; p < plane; ++p)
        for (std::size_t c = 0; c < channels; ++c)
          *cell++ = images[((clip * channels + c) * extent(frames) + f) * plane + p];
  const int clips = static_cast<int>(std::ceil(std::sqrt(static_cast<double>(count) / frames)));
  const int columns = frames * clips, rows = (count + clips - 1) / clips;
  return png_grid(cells, shape, rows, columns, gap);
}

}  // namespace ganymede::kernel
