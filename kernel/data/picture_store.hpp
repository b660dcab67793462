#pragma once
// Picture files that are decoded when they are first read.

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <vector>

#include "kernel/data/images.hpp"

namespace ganymede::kernel {

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
