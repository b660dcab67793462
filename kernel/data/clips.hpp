#pragma once
// Short video clips: from folders of frames, or made by moving images.

#include <cstdint>
#include <filesystem>
#include <vector>

#include "kernel/data/images.hpp"

namespace ganymede::kernel {

/// Lists the files of all clips of `frames` frames, clip after clip. Every folder that holds PNG or JPEG files, from
/// `directory` down to any depth, is a video; the files are its frames, in the order of their names (UCF101:
/// class/video/frame). A video is cut into consecutive clips; for example one of 20 frames gives two clips of 8, and 4
/// frames are skipped. Throws ConfigError if the directory does not exist or no video is long enough.
std::vector<std::filesystem::path> clip_files(const std::filesystem::path& directory, int frames);

/// Makes `count` clips of the images, used in turn. In each clip the image glides at a constant random speed, and what
/// leaves at one edge comes back at the other.
Images moving_clips(const Images& images, int count, std::uint64_t seed, int frames);

}  // namespace ganymede::kernel
