#pragma once
// Short clips of video: folders of frames, and moving glyphs.

#include <cstdint>
#include <filesystem>

#include "kernel/data/images.hpp"

namespace ganymede::kernel {

/// Every folder below `directory`, at any depth, that holds PNG or JPEG files is a video and these its frames, in the
/// order of their names (UCF101: class/video/frame). Each gives as many clips of `shape.frames` frames as follow one
/// another in it; the frames left over are skipped. ConfigError when the directory is not there, no video is long
/// enough, or a picture is damaged.
Images read_clips(const std::filesystem::path& directory, ImageShape shape);

/// `count` clips of the given images, each gliding with a speed of its own, and what leaves at one edge coming back at
/// the other.
Images moving_clips(const Images& images, int count, std::uint64_t seed, int frames);

}  // namespace ganymede::kernel
