#pragma once
// Short clips of video: folders of frames, and moving glyphs.

#include <cstdint>
#include <filesystem>
#include <vector>

#include "kernel/data/images.hpp"

namespace ganymede::kernel {

/// Every folder below `directory`, at any depth, that holds PNG or JPEG files is a video and these its frames, in the
/// order of their names (UCF101: class/video/frame). Each gives as many clips of so many frames as follow one another
/// in it; the frames left over are skipped. The files of one clip after the other. ConfigError when the directory is
/// not there or no video is long enough.
std::vector<std::filesystem::path> clip_files(const std::filesystem::path& directory, int frames);

/// `count` clips of the given images, each gliding with a speed of its own, and what leaves at one edge coming back at
/// the other.
Images moving_clips(const Images& images, int count, std::uint64_t seed, int frames);

}  // namespace ganymede::kernel
