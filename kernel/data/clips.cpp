#include "kernel/data/clips.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <map>
#include <system_error>
#include <vector>

#include "common/errors.hpp"
#include "common/random.hpp"
#include "kernel/data/picture.hpp"

namespace ganymede::kernel {
std::vector<std::filesystem::path> clip_files(const std::filesystem::path& directory, int frames_of_clip) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(directory, ignored))
    throw ConfigError(
        fmt::format("--dataset: {}: found no directory, expected one with folders of frames", directory.string()));
  const auto frames = static_cast<std::size_t>(frames_of_clip);
  std::map<std::filesystem::path, std::vector<std::filesystem::path>> videos;
  for (auto& file : picture_files(directory)) videos[file.parent_path()].push_back(file);
  std::vector<std::filesystem::path> wanted;
  std::size_t longest = 0;
  for (const auto& [folder, files] : videos) {
    longest = std::max(longest, files.size());
    wanted.insert(wanted.end(), files.begin(),
                  files.begin() + static_cast<std::ptrdiff_t>(files.size() / frames * frames));
  }
  if (wanted.empty())
    throw ConfigError(fmt::format("{}: found no folder of {} frames or more (PNG or JPEG files); the longest has {}",
                                  directory.string(), frames, longest));
  return wanted;
}

Images moving_clips(const Images& images, int count, std::uint64_t seed, int frames) {
  assert(images.frames == 1 && images.count > 0);
  const std::size_t plane = static_cast<std::size_t>(images.height) * static_cast<std::size_t>(images.width);
  Images clips{count, images.height, images.width, {}, images.channels, frames};
  clips.pixels.resize(static_cast<std::size_t>(count) * static_cast<std::size_t>(clips.shape().pixels()));
  RandomStream random(seed, "kernel/clips");
  std::uint8_t* to = clips.pixels.data();
  for (int clip = 0; clip < count; ++clip) {
    const std::uint8_t* image =
        images.pixels.data() + static_cast<std::size_t>(clip % images.count * images.channels) * plane;
    // Speeds in pixels per frame, at most an eighth of the image.
    const auto speed = [&](int extent) { return static_cast<int>(random.below(extent / 4 + 1U)) - extent / 8; };
    const int down = speed(images.height), right = speed(images.width);
    for (int c = 0; c < images.channels; ++c)
      for (int f = 0; f < frames; ++f)
        for (int y = 0; y < images.height; ++y) {
          const int from_y = ((y - f * down) % images.height + images.height) % images.height;
          const std::uint8_t* row = image + static_cast<std::size_t>(c) * plane +
                                    static_cast<std::size_t>(from_y) * static_cast<std::size_t>(images.width);
          const int shift = ((f * right) % images.width + images.width) % images.width;
          std::rotate_copy(row, row + (images.width - shift) % images.width, row + images.width, to);
          to += images.width;
        }
  }
  return clips;
}

}  // namespace ganymede::kernel
