#pragma once
// CIFAR-10's binary files (Krizhevsky 2009): for each image a byte with its class, then 3 x 32 x 32 bytes.

#include <filesystem>
#include <vector>

#include "kernel/data/images.hpp"

namespace ganymede::kernel {

struct CifarImages {
  Images images;
  std::vector<std::uint8_t> labels;  ///< 0 to 9
};

/// Reads all images of the files, in order. Throws ConfigError with the file if its length is not a multiple of an
/// image's or a class is above 9.
CifarImages read_cifar(const std::vector<std::filesystem::path>& files);

}  // namespace ganymede::kernel
