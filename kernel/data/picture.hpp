#pragma once
// PNG and JPEG files as training images: decoded, shrunk or enlarged until the shorter side fits, cropped in the
// middle.

#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "kernel/data/images.hpp"

namespace ganymede::kernel {

struct Picture {
  int height = 0, width = 0;
  std::vector<std::uint8_t> pixels;  ///< [height x width x 3]
};

/// Whether the name ends as a PNG's or a JPEG's does.
bool is_picture_name(const std::filesystem::path& file);

/// By what the file is, not by its name. ConfigError naming the file when it is neither, damaged, cut short, or of more
/// than 100 million pixels.
Picture read_picture(const std::filesystem::path& file);

/// [channels x height x width] bytes of `shape`: every pixel the mean of the area that it covers, or interpolated
/// linearly where the picture is enlarged; grey as the eye weighs colours (ITU-R BT.601).
void fit_picture(const Picture& picture, ImageShape shape, std::span<std::uint8_t> out);

/// All pictures below the directory, in the order of their names, whatever order the directory has.
std::vector<std::filesystem::path> picture_files(const std::filesystem::path& directory);

}  // namespace ganymede::kernel
