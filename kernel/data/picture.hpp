#pragma once
// PNG and JPEG files as training images: they are decoded, shrunk or enlarged until the shorter side fits, and cropped
// in the middle.

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <vector>

#include "kernel/gan.hpp"

namespace ganymede::kernel {

// Images in host memory with a byte for each value: what every reader of data returns.

struct Images {
  int count = 0, height = 0, width = 0;
  std::vector<std::uint8_t> pixels = {};  ///< [count x channels x frames x height x width]
  int channels = 1;                       ///< 1: grey; 3: red, green and blue
  int frames = 1;                         ///< frames of a clip; 1 for still images

  ImageShape shape() const { return {height, width, channels, frames}; }
};

/// Shrinks images to `shape`, whose extents must divide theirs; the channels must be the same. Every pixel becomes the
/// mean of the block that it covers, rounded to the nearest integer.
Images shrink(const Images& images, ImageShape shape);

struct Picture {
  int height = 0, width = 0;
  std::vector<std::uint8_t> pixels;  ///< [height x width x 3]
};

/// True if the name ends in .png, .jpg or .jpeg, in upper or lower case.
bool is_picture_name(const std::filesystem::path& file);

/// Decodes a file by its first bytes, whatever its name. Throws ConfigError with the file if it is neither PNG nor
/// JPEG, is damaged or cut short, or has more than 100 million pixels.
Picture read_picture(const std::filesystem::path& file);

/// Writes the picture as [channels x height x width] bytes of `shape` to `out`. Every pixel is the mean of the area
/// that it covers, or interpolated linearly if the picture is enlarged. Grey is the luma of ITU-R BT.601.
void fit_picture(const Picture& picture, ImageShape shape, std::span<std::uint8_t> out);

/// All pictures below the directory, at any depth, sorted by path. Throws std::filesystem::filesystem_error if a folder
/// cannot be read.
std::vector<std::filesystem::path> picture_files(const std::filesystem::path& directory);

// Picture files that are decoded when they are first read.

class PictureStore {
 public:
  /// Image i consists of files [i * shape.frames, (i + 1) * shape.frames). With `cached` decoded pictures are kept.
  PictureStore(std::vector<std::filesystem::path> files, ImageShape shape, bool cached);
  ~PictureStore();
  PictureStore(const PictureStore&) = delete;
  PictureStore& operator=(const PictureStore&) = delete;

  int count() const { return static_cast<int>(files_.size()) / shape_.frames; }
  /// Writes image `index` as [channels x frames x height x width] bytes to `out`. Any thread may call it. Throws
  /// ConfigError with the file if it is damaged.
  void read(std::uint32_t index, std::uint8_t* out) const;
  /// Decodes all pictures, on all cores. Throws ConfigError with the file of the first damaged one.
  Images decode_all() const;
  /// A hash of the files' names and sizes.
  std::uint64_t fingerprint() const;

 private:
  void decode(std::uint32_t index, std::uint8_t* out) const;

  std::vector<std::filesystem::path> files_;
  ImageShape shape_;
  bool cached_;
  std::unique_ptr<std::atomic<std::uint8_t*>[]> kept_;  // decoded images, owned; null: not kept
};

}  // namespace ganymede::kernel
