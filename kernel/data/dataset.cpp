#include "kernel/data/dataset.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <optional>
#include <system_error>

#include "common/errors.hpp"
#include "common/file.hpp"
#include "common/random.hpp"
#include "kernel/data/glyphs.hpp"

namespace ganymede::kernel {
namespace {

namespace fs = std::filesystem;

// Another number or another drawing is another version: old files are then left alone, never mixed.
constexpr const char* kBuiltinVersion = "glyphs-28x28-v1";
constexpr int kBuiltinImages = 10'000;
constexpr std::uint64_t kBuiltinSeed = 1;

constexpr const char* kImages = "train-images-idx3-ubyte";
constexpr const char* kLabels = "train-labels-idx1-ubyte";
constexpr const char* kDigest = "digest";
// As some archives name them.
constexpr const char* kDottedImages = "train-images.idx3-ubyte";
constexpr const char* kDottedLabels = "train-labels.idx1-ubyte";

std::optional<fs::path> either(const fs::path& directory, const char* first, const char* second) {
  std::error_code ignored;
  for (const char* name : {first, second})
    if (fs::exists(directory / name, ignored)) return directory / name;
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

/// Whether a built-in set lies there as it was written; one that was cut short or changed is drawn again.
bool is_intact(const fs::path& directory) {
  std::error_code ignored;
  for (const char* name : {kImages, kLabels, kDigest})
    if (!fs::is_regular_file(directory / name, ignored)) return false;
  return read_file(directory / kDigest) == digest(read_file(directory / kImages), read_file(directory / kLabels));
}

Dataset read_directory(std::string name, const fs::path& directory) {
  std::error_code ignored;
  if (!fs::is_directory(directory, ignored))
    throw ConfigError(fmt::format("--dataset: {}: found no directory, expected one with {} or the word {}",
                                  directory.string(), kImages, kBuiltinDataset));
  const auto images = either(directory, kImages, kDottedImages);
  if (!images)
    throw ConfigError(fmt::format("{}: found neither {} nor {}", directory.string(), kImages, kDottedImages));
  Dataset dataset{std::move(name), read_idx_images(*images), {}};
  if (const auto labels = either(directory, kLabels, kDottedLabels)) {
    dataset.labels = read_idx_labels(*labels);
    if (dataset.labels.size() != static_cast<std::size_t>(dataset.images.count))
      throw ConfigError(fmt::format("{}: found {} labels, expected {}: one for each image of {}", labels->string(),
                                    dataset.labels.size(), dataset.images.count, images->string()));
  }
  return dataset;
}

}  // namespace

fs::path cache_directory() {
  if (const char* xdg = std::getenv("XDG_CACHE_HOME"); xdg != nullptr && *xdg == '/')
    if (fs::path path = fs::path(xdg) / "ganymede"; is_writable_directory(path)) return path;
  if (const char* home = std::getenv("HOME"); home != nullptr && *home == '/')
    if (fs::path path = fs::path(home) / ".cache" / "ganymede"; is_writable_directory(path)) return path;
  return fs::temp_directory_path() / "ganymede";
}

fs::path write_builtin_dataset(const fs::path& cache) {
  fs::path directory = cache / kBuiltinVersion;
  if (is_intact(directory)) return directory;
  std::error_code error;
  fs::create_directories(directory, error);
  if (error) throw ConfigError(fmt::format("{}: cannot be made: {}", directory.string(), error.message()));
  const Glyphs glyphs = draw_glyphs(kBuiltinImages, kBuiltinSeed);
  // Each file appears whole or not at all; a second process that draws at the same time writes the same bytes.
  const std::string labels = write_idx_labels(glyphs.labels);
  const std::string images = write_idx_images(glyphs.images);
  write_file(directory / kLabels, labels);
  write_file(directory / kImages, images);
  write_file(directory / kDigest, digest(images, labels));
  return directory;
}

Dataset open_dataset(const std::string& name) {
  if (name != kBuiltinDataset) return read_directory(name, name);
  return read_directory(name, write_builtin_dataset(cache_directory()));
}

}  // namespace ganymede::kernel
