#pragma once
// The IDX files of MNIST: images of bytes (magic 0x00000803) and labels (0x00000801), uncompressed, big-endian headers.

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace ganymede::kernel {

struct IdxImages {
  int count = 0, height = 0, width = 0;
  std::vector<std::uint8_t> pixels;  ///< [count x height x width]
};

/// ConfigError naming the file, what was found and what was expected: wrong magic, compressed, zero or absurd counts, a
/// length that contradicts the header.
IdxImages read_idx_images(const std::filesystem::path& file);
std::vector<std::uint8_t> read_idx_labels(const std::filesystem::path& file);

/// The files' bytes.
std::string write_idx_images(const IdxImages& images);
std::string write_idx_labels(const std::vector<std::uint8_t>& labels);

}  // namespace ganymede::kernel
