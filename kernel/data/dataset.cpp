#include "kernel/data/dataset.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <map>
#include <optional>
#include <system_error>
#include <vector>

#include "common/errors.hpp"
#include "common/file.hpp"
#include "common/random.hpp"
#include "kernel/data/glyphs.hpp"
#include "kernel/data/idx.hpp"
#include "kernel/data/picture.hpp"

namespace ganymede::kernel {
namespace {

namespace fs = std::filesystem;

// Name of the built-in set. Its version must change with the number of images or the way they are drawn, so that sets
// in caches are never mixed.
std::string builtin_version(ImageShape shape) {
  return fmt::format("glyphs-{}x{}{}-v1", shape.height, shape.width, shape.channels == 1 ? "" : "-colour");
}
constexpr int kBuiltinImages = 10'000;  ///< most images of the built-in set
/// Upper limits of the pixels' bytes. Sets of large images or clips have fewer than kBuiltinImages, to spare the disk.
constexpr int kBuiltinBytes = 128 << 20, kBuiltinClipBytes = 32 << 20;
constexpr std::uint64_t kBuiltinSeed = 1;

constexpr const char* kImages = "train-images-idx3-ubyte";
constexpr const char* kLabels = "train-labels-idx1-ubyte";
constexpr const char* kDigest = "digest";
// Some archives of MNIST write these names, with a dot in place of a hyphen.
constexpr const char* kDottedImages = "train-images.idx3-ubyte";
constexpr const char* kDottedLabels = "train-labels.idx1-ubyte";

/// The first of these files that exists, plain or gzipped.
std::optional<fs::path> first_of(const fs::path& directory, const std::vector<std::string>& names) {
  std::error_code ignored;
  for (const auto& name : names)
    for (const char* packed : {"", ".gz"})
      if (fs::path file = directory / (name + packed); fs::exists(file, ignored)) return file;
  return std::nullopt;
}

bool is_writable_directory(const fs::path& directory) {
  std::error_code error;
  fs::create_directories(directory, error);
  if (error) return false;
  try {
    check_writable(directory / "probe");
  } catch (const ConfigError&) {
    return false;
  }
  return true;
}

std::string digest(const std::string& images, const std::string& labels) {
  return fmt::format("{:016x} {:016x}\n", fnv1a(images), fnv1a(labels));
}

/// True if the directory holds a built-in set as it was written. A set that was cut short or changed is drawn again.
bool is_intact(const fs::path& directory) {
  std::error_code ignored;
  for (const char* name : {kImages, kLabels, kDigest})
    if (!fs::is_regular_file(directory / name, ignored)) return false;
  return read_file(directory / kDigest) == digest(read_file(directory / kImages), read_file(directory / kLabels));
}

Dataset read_idx(std::string name, const fs::path& directory, const fs::path& images) {
  Dataset dataset{std::move(name), read_idx_images(images), {}};
  if (const auto labels = first_of(directory, {kLabels, kDottedLabels})) {
    dataset.labels = read_idx_labels(*labels);
    if (dataset.labels.size() != static_cast<std::size_t>(dataset.images.count))
      throw ConfigError(fmt::format("{}: found {} labels, expected {}: one for each image of {}", labels->string(),
                                    dataset.labels.size(), dataset.images.count, images.string()));
  }
  return dataset;
}

std::vector<fs::path> cifar_files(const fs::path& directory) {
  std::vector<fs::path> files;
  for (int i = 1; i <= 5; ++i)
    if (auto file = first_of(directory, {fmt::format("data_batch_{}.bin", i)})) files.push_back(*file);
  return files;
}

Dataset of_pictures(std::string name, std::vector<fs::path> files, ImageShape shape, PictureReading reading) {
  auto store = std::make_shared<const PictureStore>(std::move(files), shape, reading.cached);
  Dataset dataset{std::move(name), {store->count(), shape.height, shape.width, {}, shape.channels, shape.frames}};
  dataset.pictures = std::move(store);
  if (reading.now) dataset.decode_all();
  return dataset;
}

Dataset open_clips(const std::string& name, ImageShape shape, PictureReading reading) {
  if (name == kBuiltinDataset) {
    const ImageShape still{shape.height, shape.width, shape.channels};
    const Dataset stills = read_idx(name, write_builtin_dataset(cache_directory(), still),
                                    write_builtin_dataset(cache_directory(), still) / kImages);
    Dataset clips{name,
                  moving_clips(stills.images, std::min(kBuiltinImages, kBuiltinClipBytes / shape.pixels()),
                               kBuiltinSeed, shape.frames),
                  {}};
    for (std::size_t i = 0; i < static_cast<std::size_t>(clips.images.count); ++i)
      clips.labels.push_back(stills.labels[i % stills.labels.size()]);
    return clips;
  }
  return of_pictures(name, clip_files(name, shape.frames), shape, reading);
}

Dataset read_directory(std::string name, const fs::path& directory, ImageShape shape, PictureReading reading) {
  std::error_code ignored;
  if (!fs::is_directory(directory, ignored))
    throw ConfigError(fmt::format("--dataset: {}: found no directory, expected one with images or the word {}",
                                  directory.string(), kBuiltinDataset));
  if (const auto images = first_of(directory, {kImages, kDottedImages}))
    return read_idx(std::move(name), directory, *images);
  if (const auto files = cifar_files(directory); !files.empty()) {
    CifarImages cifar = read_cifar(files);
    return {std::move(name), std::move(cifar.images), std::move(cifar.labels)};
  }
  auto pictures = picture_files(directory);
  if (pictures.empty())
    throw ConfigError(
        fmt::format("{}: found neither {} nor data_batch_1.bin nor PNG or JPEG files", directory.string(), kImages));
  return of_pictures(std::move(name), std::move(pictures), shape, reading);
}

/// This user's folder in the system's folder for temporary files. Everyone may make a folder there, so that one of its
/// name may be another user's, who could put files of their choice in it: then this throws ConfigError.
fs::path own_temporary_folder() {
  const fs::path folder = fs::temp_directory_path() / fmt::format("ganymede-{}", ::geteuid());
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST)
    throw ConfigError(fmt::format("{}: cannot be made: {}", folder.string(), std::strerror(errno)));
  constexpr mode_t kOthersMayWrite = 022;
  struct stat info {};
  if (::lstat(folder.c_str(), &info) != 0 || !S_ISDIR(info.st_mode) || info.st_uid != ::geteuid() ||
      (info.st_mode & kOthersMayWrite) != 0)
    throw ConfigError(
        fmt::format("{}: found what others may write to, expected a folder of this user alone, to keep data in; or set "
                    "XDG_CACHE_HOME to a folder that can be written",
                    folder.string()));
  return folder;
}

}  // namespace

void Dataset::read(std::uint32_t index, std::uint8_t* out) const {
  index %= static_cast<std::uint32_t>(images.count);
  if (images.pixels.empty()) return pictures->read(index, out);
  const auto bytes = static_cast<std::size_t>(images.shape().pixels());
  std::memcpy(out, images.pixels.data() + index * bytes, bytes);
}

void Dataset::decode_all() {
  if (images.pixels.empty()) images = pictures->decode_all();
  if (other) other->decode_all();
}

std::uint64_t Dataset::fingerprint(bool with_labels) const {
  const auto hash = [](const std::vector<std::uint8_t>& bytes) {
    return fnv1a({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  };
  const std::uint64_t of_labels = with_labels ? hash(labels) : 0;
  const std::uint64_t of_first = of_labels ^ (pictures ? pictures->fingerprint() : hash(images.pixels));
  return other ? 3 * of_first + other->fingerprint() : of_first;
}

fs::path cache_directory() {
  if (const char* xdg = std::getenv("XDG_CACHE_HOME"); xdg != nullptr && *xdg == '/')
    if (fs::path path = fs::path(xdg) / "ganymede"; is_writable_directory(path)) return path;
  if (const char* home = std::getenv("HOME"); home != nullptr && *home == '/')
    if (fs::path path = fs::path(home) / ".cache" / "ganymede"; is_writable_directory(path)) return path;
  return own_temporary_folder();
}

fs::path write_builtin_dataset(const fs::path& cache, ImageShape shape) {
  fs::path directory = cache / builtin_version(shape);
  if (is_intact(directory)) return directory;
  std::error_code error;
  fs::create_directories(directory, error);
  if (error) throw ConfigError(fmt::format("{}: cannot be made: {}", directory.string(), error.message()));
  const Glyphs glyphs = draw_glyphs(std::min(kBuiltinImages, kBuiltinBytes / shape.pixels()), kBuiltinSeed, shape);
  // Each file appears whole or not at all; a second process that draws at the same time writes the same bytes.
  const std::string labels = write_idx_labels(glyphs.labels);
  const std::string images = write_idx_images(glyphs.images);
  write_file(directory / kLabels, labels);
  write_file(directory / kImages, images);
  write_file(directory / kDigest, digest(images, labels));
  return directory;
}

std::optional<ImageShape> image_of_dataset(const std::string& name) {
  std::error_code ignored;
  if (name == kBuiltinDataset || !fs::is_directory(name, ignored)) return std::nullopt;
  if (const auto file = first_of(name, {kImages, kDottedImages})) {
    const Images images = read_idx_images(*file);
    return images.shape();
  }
  if (!cifar_files(name).empty()) return ImageShape{32, 32, 3};
  return std::nullopt;
}

Dataset open_dataset(const std::string& name, ImageShape shape, PictureReading pictures) {
  if (shape.frames > 1) return open_clips(name, shape, pictures);
  const bool builtin = name == kBuiltinDataset;
  Dataset dataset =
      read_directory(name, builtin ? write_builtin_dataset(cache_directory(), shape) : fs::path(name), shape, pictures);
  const Images& images = dataset.images;
  if (!(images.shape() == shape))
    throw ConfigError(fmt::format("{}: found images of {}x{}x{}, expected {}x{}x{} (rows, columns, channels)", name,
                                  images.height, images.width, images.channels, shape.height, shape.width,
                                  shape.channels));
  return dataset;
}

Dataset open_domains(const std::string& name, ImageShape shape, PictureReading pictures) {
  if (name == kBuiltinDataset) {
    Dataset first = open_dataset(name, shape, pictures);
    auto second = std::make_shared<Dataset>(first);
    first.images.count /= 2;
    second->images.count -= first.images.count;
    const std::ptrdiff_t bytes = std::ptrdiff_t{first.images.count} * shape.pixels();
    first.images.pixels.resize(static_cast<std::size_t>(bytes));
    second->images.pixels.erase(second->images.pixels.begin(), second->images.pixels.begin() + bytes);
    for (std::uint8_t& value : second->images.pixels) value = static_cast<std::uint8_t>(255 - value);
    first.labels = second->labels = {};
    first.other = std::move(second);
    return first;
  }
  std::error_code ignored;
  for (const auto& [a, b] : {std::pair{"A", "B"}, std::pair{"trainA", "trainB"}}) {
    const fs::path first = fs::path(name) / a, second = fs::path(name) / b;
    if (!fs::is_directory(first, ignored) || !fs::is_directory(second, ignored)) continue;
    Dataset dataset = open_dataset(first.string(), shape, pictures);
    dataset.other = std::make_shared<Dataset>(open_dataset(second.string(), shape, pictures));
    dataset.name = name;
    return dataset;
  }
  throw ConfigError(
      fmt::format("--dataset: {}: found neither the folders A and B nor trainA and trainB, expected one of images for "
                  "each of two domains, or the word {}",
                  name, kBuiltinDataset));
}

void check_labels(const Dataset& dataset, int classes, const std::string& model) {
  if (dataset.labels.empty())
    throw ConfigError(fmt::format(
        "--dataset: {}: found images without labels, expected a class from 0 to {} for each, which {} learns from: IDX "
        "files with their labels, CIFAR-10's files, or {}",
        dataset.name, classes - 1, model, kBuiltinDataset));
  const auto largest = std::max_element(dataset.labels.begin(), dataset.labels.end());
  if (*largest >= classes)
    throw ConfigError(fmt::format("--dataset: {}: image {}: found class {}, expected 0 to {} for {}", dataset.name,
                                  largest - dataset.labels.begin(), *largest, classes - 1, model));
}

std::vector<std::filesystem::path> clip_files(const std::filesystem::path& directory, int frames_of_clip) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(directory, ignored))
    throw ConfigError(
        fmt::format("--dataset: {}: found no directory, expected one with folders of frames", directory.string()));
  const auto frames = static_cast<std::size_t>(frames_of_clip);
  std::map<std::filesystem::path, std::vector<std::filesystem::path>> videos;
  for (auto& file : picture_files(directory)) videos[file.parent_path()].push_back(file);
  std::vector<std::filesystem::path> wanted;
  std::size_t longest = 0;
  for (const auto& [folder, files] : videos) {
    longest = std::max(longest, files.size());
    wanted.insert(wanted.end(), files.begin(),
                  files.begin() + static_cast<std::ptrdiff_t>(files.size() / frames * frames));
  }
  if (wanted.empty())
    throw ConfigError(fmt::format("{}: found no folder of {} frames or more (PNG or JPEG files); the longest has {}",
                                  directory.string(), frames, longest));
  return wanted;
}

Images moving_clips(const Images& images, int count, std::uint64_t seed, int frames) {
  assert(images.frames == 1 && images.count > 0);
  const std::size_t plane = static_cast<std::size_t>(images.height) * static_cast<std::size_t>(images.width);
  Images clips{count, images.height, images.width, {}, images.channels, frames};
  clips.pixels.resize(static_cast<std::size_t>(count) * static_cast<std::size_t>(clips.shape().pixels()));
  RandomStream random(seed, "kernel/clips");
  std::uint8_t* to = clips.pixels.data();
  for (int clip = 0; clip < count; ++clip) {
    const std::uint8_t* image =
        images.pixels.data() + static_cast<std::size_t>(clip % images.count * images.channels) * plane;
    // Speeds in pixels per frame, at most an eighth of the image.
    const auto speed = [&](int extent) { return static_cast<int>(random.below(extent / 4 + 1U)) - extent / 8; };
    const int down = speed(images.height), right = speed(images.width);
    for (int c = 0; c < images.channels; ++c)
      for (int f = 0; f < frames; ++f)
        for (int y = 0; y < images.height; ++y) {
          const int from_y = ((y - f * down) % images.height + images.height) % images.height;
          const std::uint8_t* row = image + static_cast<std::size_t>(c) * plane +
                                    static_cast<std::size_t>(from_y) * static_cast<std::size_t>(images.width);
          const int shift = ((f * right) % images.width + images.width) % images.width;
          std::rotate_copy(row, row + (images.width - shift) % images.width, row + images.width, to);
          to += images.width;
        }
  }
  return clips;
}

}  // namespace ganymede::kernel
