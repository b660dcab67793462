#pragma once
// The IDX files of MNIST: images of bytes (magic 0x00000803; 0x00000804 with channels), labels (0x00000801), big-endian
// headers; plain or gzipped.

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "kernel/data/picture.hpp"

namespace ganymede::kernel {

/// Both throw ConfigError with the file, what was found and what was expected, for a wrong magic number, damaged gzip,
/// a count of zero or out of range, and a length that contradicts the header.
Images read_idx_images(const std::filesystem::path& file);
std::vector<std::uint8_t> read_idx_labels(const std::filesystem::path& file);

/// The bytes of such files.
std::string write_idx_images(const Images& images);
std::string write_idx_labels(const std::vector<std::uint8_t>& labels);

// CIFAR-10's binary files (Krizhevsky 2009): for each image a byte with its class, then 3 x 32 x 32 bytes.

struct CifarImages {
  Images images;
  std::vector<std::uint8_t> labels;  ///< 0 to 9
};

/// Reads all images of the files, in order. Throws ConfigError with the file if its length is not a multiple of an
/// image's or a class is above 9.
CifarImages read_cifar(const std::vector<std::filesystem::path>& files);

// Reads files that may be gzipped, as MNIST's are.

/// The file's bytes, inflated if it begins with gzip's magic number. Throws ConfigError if it cannot be read, is
/// damaged or cut short, or inflates to more than 64 MiB and 100 times its size, or to more than 4 GiB.
std::string read_maybe_gzip(const std::filesystem::path& file);

}  // namespace ganymede::kernel
