#include "kernel/data/picture.hpp"

#include <fmt/format.h>
#include <png.h>
#include <turbojpeg.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <system_error>

#include "common/errors.hpp"
#include "common/file.hpp"
#include "common/process.hpp"
#include "common/random.hpp"
#include "kernel/ops/eigen/thread_pool.hpp"

namespace ganymede::kernel {

Images shrink(const Images& images, ImageShape shape) {
  assert(images.channels == shape.channels && images.frames % shape.frames == 0 && images.height % shape.height == 0 &&
         images.width % shape.width == 0);
  const int frames = images.frames / shape.frames, rows = images.height / shape.height,
            columns = images.width / shape.width, area = frames * rows * columns;
  Images small{images.count, shape.height, shape.width, {}, shape.channels, shape.frames};
  small.pixels.resize(static_cast<std::size_t>(images.count) * static_cast<std::size_t>(shape.pixels()));
  std::vector<int> sums(static_cast<std::size_t>(shape.width));
  const std::uint8_t* from = images.pixels.data();
  std::uint8_t* to = small.pixels.data();
  const auto plane = std::ptrdiff_t{images.height} * images.width;
  for (std::ptrdiff_t clip = 0; clip < std::ptrdiff_t{images.count} * images.channels * shape.frames; ++clip)
    for (int y = 0; y < shape.height; ++y) {
      std::fill(sums.begin(), sums.end(), 0);
      for (int f = 0; f < frames; ++f)
        for (int r = 0; r < rows; ++r) {
          const std::uint8_t* row = from + (clip * frames + f) * plane + std::ptrdiff_t{y * rows + r} * images.width;
          for (int& sum : sums)
            for (int c = 0; c < columns; ++c) sum += *row++;
        }
      for (const int sum : sums) *to++ = static_cast<std::uint8_t>((sum + area / 2) / area);
    }
  return small;
}

namespace {

constexpr std::int64_t kMaxPixels = 100'000'000;

void check_size(const std::string& file, std::int64_t height, std::int64_t width) {
  if (height < 1 || width < 1 || height * width > kMaxPixels)
    throw ConfigError(fmt::format("{}: found {}x{} pixels, expected 1 to {} in all", file, height, width, kMaxPixels));
}

Picture read_png(const std::string& file, const std::string& bytes) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  const auto check = [&](int good) {
    if (good != 0) return;
    const std::string message = static_cast<const char*>(image.message);
    png_image_free(&image);
    throw ConfigError(fmt::format("{}: found a damaged PNG ({})", file, message));
  };
  check(png_image_begin_read_from_memory(&image, bytes.data(), bytes.size()));
  try {
    check_size(file, image.height, image.width);
  } catch (...) {
    png_image_free(&image);
    throw;
  }
  image.format = PNG_FORMAT_RGB;
  Picture out{static_cast<int>(image.height), static_cast<int>(image.width), {}};
  out.pixels.resize(PNG_IMAGE_SIZE(image));
  const png_color black{0, 0, 0};  // the background of transparent pixels
  check(png_image_finish_read(&image, &black, out.pixels.data(), 0, nullptr));
  return out;
}

Picture read_jpeg(const std::string& file, const std::string& bytes) {
  const std::unique_ptr<void, int (*)(tjhandle)> decoder(::tjInitDecompress(), ::tjDestroy);
  if (decoder == nullptr) throw Failure("TurboJPEG: cannot begin to decompress");
  const auto check = [&](int status) {
    if (status != 0)
      throw ConfigError(fmt::format("{}: found a damaged JPEG ({})", file, ::tjGetErrorStr2(decoder.get())));
  };
  const auto* data = reinterpret_cast<const unsigned char*>(bytes.data());
  Picture out;
  int sampling = 0, colours = 0;
  const int status =
      ::tjDecompressHeader3(decoder.get(), data, bytes.size(), &out.width, &out.height, &sampling, &colours);
  // TurboJPEG has no name for some rare chroma samplings. The call above then reports an error, but the file decodes
  // below, so only a missing size counts as an error here.
  if (out.width < 1 || out.height < 1) {
    check(status);
    throw ConfigError(fmt::format("{}: found a damaged JPEG (it holds no image)", file));
  }
  check_size(file, out.height, out.width);
  out.pixels.resize(static_cast<std::size_t>(out.height) * static_cast<std::size_t>(out.width) * 3);
  // Warnings count as errors, because a file that is cut short only warns. Without flags for speed, the inverse DCT and
  // the interpolation of colours are those of plain libjpeg.
  check(::tjDecompress2(decoder.get(), data, bytes.size(), out.pixels.data(), out.width, 0, out.height, TJPF_RGB,
                        TJFLAG_ACCURATEDCT));
  return out;
}

/// The source pixels that make a target pixel along one axis, with their weights.
struct SourceSpan {
  int first;
  std::vector<float> weights;  ///< sum to 1
};

/// The source spans of `to` target pixels, each `scale` source pixels wide, placed in the middle of `from` source
/// pixels.
std::vector<SourceSpan> source_spans(int from, int to, double scale) {
  const double begin = (from - to * scale) / 2, width = std::max(1.0, scale);
  std::vector<SourceSpan> out;
  for (int i = 0; i < to; ++i) {
    const double middle = begin + (i + 0.5) * scale, low = middle - width / 2, high = middle + width / 2;
    const int first = std::clamp(static_cast<int>(std::floor(low)), 0, from - 1);
    const int last = std::clamp(static_cast<int>(std::ceil(high)) - 1, first, from - 1);
    SourceSpan reach{first, {}};
    float sum = 0;
    for (int source = first; source <= last; ++source) {
      const double covered = std::min(high, source + 1.0) - std::max(low, double(source));
      reach.weights.push_back(static_cast<float>(std::max(covered, 0.0)));
      sum += reach.weights.back();
    }
    for (float& weight : reach.weights)
      weight = sum > 0 ? weight / sum : 1.0F / static_cast<float>(reach.weights.size());
    out.push_back(std::move(reach));
  }
  return out;
}

}  // namespace

bool is_picture_name(const std::filesystem::path& file) {
  std::string extension = file.extension().string();
  for (char& letter : extension) letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  return extension == ".png" || extension == ".jpg" || extension == ".jpeg";
}

Picture read_picture(const std::filesystem::path& file) {
  const std::string bytes = read_file(file);
  if (bytes.starts_with("\x89PNG")) return read_png(file.string(), bytes);
  if (bytes.starts_with("\xff\xd8\xff")) return read_jpeg(file.string(), bytes);
  throw ConfigError(fmt::format("{}: found {}, expected a PNG or a JPEG", file.string(),
                                bytes.empty() ? "an empty file" : "neither's first bytes"));
}

void fit_picture(const Picture& picture, ImageShape shape, std::span<std::uint8_t> out) {
  assert(out.size() == static_cast<std::size_t>(shape.pixels()));
  const double scale = std::min(double(picture.height) / shape.height, double(picture.width) / shape.width);
  const auto rows = source_spans(picture.height, shape.height, scale),
             columns = source_spans(picture.width, shape.width, scale);
  const auto plane = static_cast<std::size_t>(shape.height) * static_cast<std::size_t>(shape.width);
  std::size_t at = 0;
  for (const SourceSpan& row : rows)
    for (const SourceSpan& column : columns) {
      std::array<float, 3> sum{};
      for (std::size_t i = 0; i < row.weights.size(); ++i) {
        const std::size_t y = static_cast<std::size_t>(row.first) + i;
        for (std::size_t j = 0; j < column.weights.size(); ++j) {
          const std::size_t x = static_cast<std::size_t>(column.first) + j;
          const std::uint8_t* pixel = picture.pixels.data() + (y * static_cast<std::size_t>(picture.width) + x) * 3;
          const float weight = row.weights[i] * column.weights[j];
          for (std::size_t c = 0; c < 3; ++c) sum[c] += weight * static_cast<float>(pixel[c]);
        }
      }
      const auto byte = [](float value) { return static_cast<std::uint8_t>(std::clamp(value + 0.5F, 0.0F, 255.0F)); };
      if (shape.channels == 1)
        out[at] = byte(0.299F * sum[0] + 0.587F * sum[1] + 0.114F * sum[2]);
      else
        for (std::size_t c = 0; c < 3; ++c) out[c * plane + at] = byte(sum[c]);
      ++at;
    }
}

std::vector<std::filesystem::path> picture_files(const std::filesystem::path& directory) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory))
    if (is_picture_name(entry.path()) && entry.is_regular_file()) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

PictureStore::PictureStore(std::vector<std::filesystem::path> files, ImageShape shape, bool cached)
    : files_(std::move(files)),
      shape_(shape),
      cached_(cached),
      kept_(new std::atomic<std::uint8_t*>[files_.size() / static_cast<std::size_t>(shape.frames)]()) {}

PictureStore::~PictureStore() {
  for (int i = 0; i < count(); ++i) delete[] kept_[static_cast<std::size_t>(i)].load();
}

void PictureStore::decode(std::uint32_t index, std::uint8_t* out) const {
  const ImageShape still{shape_.height, shape_.width, shape_.channels};
  const auto frames = static_cast<std::size_t>(shape_.frames), channels = static_cast<std::size_t>(shape_.channels);
  if (frames == 1)
    return fit_picture(read_picture(files_[index]), still, {out, static_cast<std::size_t>(still.pixels())});
  const std::size_t plane = static_cast<std::size_t>(still.height) * static_cast<std::size_t>(still.width);
  std::vector<std::uint8_t> frame(static_cast<std::size_t>(still.pixels()));
  for (std::size_t f = 0; f < frames; ++f) {
    fit_picture(read_picture(files_[index * frames + f]), still, frame);
    for (std::size_t c = 0; c < channels; ++c)
      std::memcpy(out + (c * frames + f) * plane, frame.data() + c * plane, plane);
  }
}

void PictureStore::read(std::uint32_t index, std::uint8_t* out) const {
  const auto bytes = static_cast<std::size_t>(shape_.pixels());
  if (const std::uint8_t* kept = kept_[index].load(std::memory_order_acquire)) {
    std::memcpy(out, kept, bytes);
    return;
  }
  decode(index, out);
  if (!cached_) return;
  auto copy = std::make_unique<std::uint8_t[]>(bytes);
  std::memcpy(copy.get(), out, bytes);
  std::uint8_t* none = nullptr;
  // If another thread was first, its copy, which has the same bytes, stays.
  if (kept_[index].compare_exchange_strong(none, copy.get(), std::memory_order_acq_rel)) copy.release();
}

Images PictureStore::decode_all() const {
  Images images{count(), shape_.height, shape_.width, {}, shape_.channels, shape_.frames};
  const auto image_bytes = static_cast<std::size_t>(shape_.pixels()), many = static_cast<std::size_t>(images.count);
  images.pixels.resize(many * image_bytes);
  ThreadPool pool(usable_cores());
  // A chunk must not throw. Errors are kept, and that of the first damaged file is thrown afterwards.
  constexpr std::size_t kChunk = 16;
  const std::size_t chunks = (many + kChunk - 1) / kChunk;
  std::vector<std::string> errors(chunks);
  pool.run(static_cast<int>(chunks), [&](int chunk, int) {
    const auto index = static_cast<std::size_t>(chunk);
    try {
      for (std::size_t i = index * kChunk; i < std::min(many, (index + 1) * kChunk); ++i)
        read(static_cast<std::uint32_t>(i), images.pixels.data() + i * image_bytes);
    } catch (const std::exception& error) {
      errors[index] = error.what();
    }
  });
  for (const std::string& error : errors)
    if (!error.empty()) throw ConfigError(error);
  return images;
}

std::uint64_t PictureStore::fingerprint() const {
  std::string all;
  for (const auto& file : files_) {
    std::error_code ignored;
    all += fmt::format("{} {}\n", file.filename().string(), std::filesystem::file_size(file, ignored));
  }
  return fnv1a(all);
}

}  // namespace ganymede::kernel
