#include "kernel/data/gzip.hpp"

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

std::string read_maybe_gzip(const std::filesystem::path& file) {
  return is_gzip(file) ? inflate_file(file.string()) : read_file(file);
}

}  // namespace ganymede::kernel
