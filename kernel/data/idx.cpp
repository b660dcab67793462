#include "kernel/data/idx.hpp"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <memory>
#include <string_view>

#include "common/errors.hpp"
#include "common/file.hpp"

namespace ganymede::kernel {
namespace {

constexpr std::uint32_t kImagesMagic = 0x00000803;  // unsigned bytes in three dimensions
constexpr std::uint32_t kColourMagic = 0x00000804;  // in four dimensions: [images x channels x rows x columns]
constexpr std::uint32_t kLabelsMagic = 0x00000801;  // unsigned bytes in one dimension
// A header with larger numbers counts as damaged.
constexpr std::uint32_t kMaxCount = 100'000'000;
constexpr std::uint32_t kMaxSide = 4096;

class Reader {
 public:
  explicit Reader(const std::filesystem::path& file) : file_(file.string()), bytes_(read_maybe_gzip(file)) {}

  std::uint32_t word(std::string_view what) {
    if (bytes_.size() - at_ < 4)
      fail(fmt::format("{} bytes", bytes_.size()), fmt::format("a header with the {}", what));
    std::uint32_t value = 0;
    for (int i = 0; i < 4; ++i) value = value << 8 | static_cast<unsigned char>(bytes_[at_++]);
    return value;
  }

  /// Reads the magic number, which must be `expected` or `other`.
  std::uint32_t magic(std::uint32_t expected, std::uint32_t other, std::string_view kind) {
    if (bytes_.empty()) fail("an empty file", fmt::format("IDX {}", kind));
    const std::uint32_t found = word("magic number");
    if (found != expected && found != other)
      fail(fmt::format("magic number 0x{:08x}", found), fmt::format("0x{:08x}: IDX {}", expected, kind));
    return found;
  }

  int extent(std::string_view what, std::uint32_t most) {
    const std::uint32_t value = word(what);
    if (value == 0 || value > most) fail(fmt::format("{} = {}", what, value), fmt::format("1 to {}", most));
    return static_cast<int>(value);
  }

  [[noreturn]] void fail(std::string_view found, std::string_view expected) const {
    throw ConfigError(fmt::format("{}: found {}, expected {}", file_, found, expected));
  }

  std::vector<std::uint8_t> rest(std::size_t expected) const {
    if (bytes_.size() - at_ != expected)
      fail(fmt::format("{} bytes after the header", bytes_.size() - at_),
           fmt::format("{} as the header says{}", expected,
                       bytes_.size() - at_ < expected ? ": the file is cut short" : ""));
    return {bytes_.begin() + static_cast<std::ptrdiff_t>(at_), bytes_.end()};
  }

 private:
  std::string file_;
  std::string bytes_;
  std::size_t at_ = 0;
};

void append_word(std::string& out, std::uint32_t value) {
  for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(value >> shift & 0xff);
}

constexpr int kCifarSide = 32, kColors = 3, kClasses = 10;
constexpr std::size_t kImage = std::size_t{kColors} * kCifarSide * kCifarSide, kRecord = 1 + kImage;

/// The format allows a thousand times the file's size, which would fill memory from a file of some MB. MNIST's files
/// inflate to 5 times theirs, and drawn images to 20 times.
constexpr std::size_t kMaxInflation = 100;
constexpr std::size_t kAlwaysInflated = std::size_t{64} << 20;
constexpr std::size_t kMaxInflatedBytes = std::size_t{4} << 30;
constexpr std::size_t kPieceBytes = std::size_t{1} << 20;

bool is_gzip(const std::filesystem::path& file) {
  if (!std::filesystem::is_regular_file(file)) return false;  // looking into a pipe would consume its first bytes
  std::array<char, 2> magic{};
  std::ifstream(file, std::ios::binary).read(magic.data(), magic.size());
  return magic == std::array{'\x1f', '\x8b'};  // RFC 1952, 2.3.1
}

std::string inflate_file(const std::string& file) {
  const std::unique_ptr<gzFile_s, int (*)(gzFile)> in(::gzopen(file.c_str(), "rb"), ::gzclose);
  if (in == nullptr) throw ConfigError(fmt::format("{}: cannot be opened", file));
  const std::size_t most =
      std::min(kMaxInflatedBytes, kAlwaysInflated + kMaxInflation * std::filesystem::file_size(file));
  std::string out;
  int state = Z_OK;
  for (int got = 1; got > 0;) {
    const std::size_t before = out.size();
    if (before >= most)
      throw ConfigError(
          fmt::format("{}: found more than {} bytes in its gzip, expected at most {} times the file's size", file, most,
                      kMaxInflation));
    if (out.capacity() < before + kPieceBytes) out.reserve(std::min(most + kPieceBytes, 2 * before + kPieceBytes));
    out.resize(before + kPieceBytes);
    got = ::gzread(in.get(), out.data() + before, static_cast<unsigned>(kPieceBytes));
    out.resize(before + static_cast<std::size_t>(std::max(got, 0)));
  }
  std::string_view message = ::gzerror(in.get(), &state);
  if (state == Z_BUF_ERROR)
    throw ConfigError(fmt::format("{}: found the end of the file, expected more of its gzip: it is cut short", file));
  if (message.starts_with(file + ": ")) message.remove_prefix(file.size() + 2);  // as zlib begins its messages
  if (state != Z_OK) throw ConfigError(fmt::format("{}: found damaged gzip data ({})", file, message));
  return out;
}

}  // namespace

Images read_idx_images(const std::filesystem::path& file) {
  Reader in(file);
  const bool colour = in.magic(kImagesMagic, kColourMagic, "images") == kColourMagic;
  Images images;
  images.count = in.extent("number of images", kMaxCount);
  if (colour) images.channels = in.extent("number of channels", 3);
  if (images.channels == 2) in.fail("2 channels", "1 or 3");
  images.height = in.extent("number of rows", kMaxSide);
  images.width = in.extent("number of columns", kMaxSide);
  images.pixels = in.rest(static_cast<std::size_t>(images.count) * static_cast<std::size_t>(images.channels) *
                          static_cast<std::size_t>(images.height) * static_cast<std::size_t>(images.width));
  return images;
}

std::vector<std::uint8_t> read_idx_labels(const std::filesystem::path& file) {
  Reader in(file);
  in.magic(kLabelsMagic, kLabelsMagic, "labels");
  const int count = in.extent("number of labels", kMaxCount);
  return in.rest(static_cast<std::size_t>(count));
}

std::string write_idx_images(const Images& images) {
  std::string out;
  out.reserve(20 + images.pixels.size());
  append_word(out, images.channels == 1 ? kImagesMagic : kColourMagic);
  append_word(out, static_cast<std::uint32_t>(images.count));
  if (images.channels != 1) append_word(out, static_cast<std::uint32_t>(images.channels));
  for (const int extent : {images.height, images.width}) append_word(out, static_cast<std::uint32_t>(extent));
  out.append(images.pixels.begin(), images.pixels.end());
  return out;
}

std::string write_idx_labels(const std::vector<std::uint8_t>& labels) {
  std::string out;
  append_word(out, kLabelsMagic);
  append_word(out, static_cast<std::uint32_t>(labels.size()));
  out.append(labels.begin(), labels.end());
  return out;
}

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

std::string read_maybe_gzip(const std::filesystem::path& file) {
  return is_gzip(file) ? inflate_file(file.string()) : read_file(file);
}

}  // namespace ganymede::kernel
