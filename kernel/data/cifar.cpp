#include "kernel/data/cifar.hpp"

#include <fmt/format.h>

#include "common/errors.hpp"
#include "kernel/data/gzip.hpp"

namespace ganymede::kernel {
namespace {

constexpr int kCifarSide = 32, kColors = 3, kClasses = 10;
constexpr std::size_t kImage = std::size_t{kColors} * kCifarSide * kCifarSide, kRecord = 1 + kImage;

}  // namespace

CifarImages read_cifar(const std::vector<std::filesystem::path>& files) {
  CifarImages out{{0, kCifarSide, kCifarSide, {}, kColors}, {}};
  for (const auto& file : files) {
    const std::string bytes = read_maybe_gzip(file);
    if (bytes.empty() || bytes.size() % kRecord != 0)
      throw ConfigError(fmt::format("{}: found {} bytes, expected a multiple of {}: a class and 3x32x32 bytes an image",
                                    file.string(), bytes.size(), kRecord));
    for (std::size_t at = 0; at < bytes.size(); at += kRecord) {
      const auto label = static_cast<std::uint8_t>(bytes[at]);
      if (label >= kClasses)
        throw ConfigError(
            fmt::format("{}: image {}: found class {}, expected 0 to 9", file.string(), at / kRecord, label));
      out.labels.push_back(label);
      const auto begin = bytes.begin() + static_cast<std::ptrdiff_t>(at) + 1;
      out.images.pixels.insert(out.images.pixels.end(), begin, begin + static_cast<std::ptrdiff_t>(kImage));
    }
    out.images.count += static_cast<int>(bytes.size() / kRecord);
  }
  return out;
}

}  // namespace ganymede::kernel
