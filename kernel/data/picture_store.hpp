#pragma once
// Picture files that are decoded when they are first asked for.

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <vector>

#include "kernel/data/images.hpp"

namespace ganymede::kernel {

class PictureStore {
 public:
  /// Image i is of the files [i * shape.frames, (i + 1) * shape.frames). `cached`: kept once they are decoded.
  PictureStore(std::vector<std::filesystem::path> files, ImageShape shape, bool cached);
  ~PictureStore();
  PictureStore(const PictureStore&) = delete;
  PictureStore& operator=(const PictureStore&) = delete;

  int count() const { return static_cast<int>(files_.size()) / shape_.frames; }
  /// [channels x frames x height x width]; by any thread. ConfigError naming a file that is damaged.
  void read(std::uint32_t index, std::uint8_t* out) const;
  /// All of them, by all cores.
  Images decode_all() const;
  /// Of names and sizes: another set has another.
  std::uint64_t fingerprint() const;

 private:
  void decode(std::uint32_t index, std::uint8_t* out) const;

  std::vector<std::filesystem::path> files_;
  ImageShape shape_;
  bool cached_;
  std::unique_ptr<std::atomic<std::uint8_t*>[]> kept_;
};

}  // namespace ganymede::kernel
