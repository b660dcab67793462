#pragma once
// The IDX files of MNIST: images of bytes (magic 0x00000803; 0x00000804 with channels), labels (0x00000801), big-endian
// headers; plain or gzipped.

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "kernel/data/images.hpp"

namespace ganymede::kernel {

/// Both throw ConfigError with the file, what was found and what was expected, for a wrong magic number, damaged gzip,
/// a count of zero or out of range, and a length that contradicts the header.
Images read_idx_images(const std::filesystem::path& file);
std::vector<std::uint8_t> read_idx_labels(const std::filesystem::path& file);

/// The bytes of such files.
std::string write_idx_images(const Images& images);
std::string write_idx_labels(const std::vector<std::uint8_t>& labels);

}  // namespace ganymede::kernel
