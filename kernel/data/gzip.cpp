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

/// A small file can inflate to thousands of times its size; the largest data set that is read this way has 0.2 GB.
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
  std::string out;
  int state = Z_OK;
  for (int got = 1; got > 0;) {
    const std::size_t before = out.size();
    if (before >= kMaxInflatedBytes)
      throw ConfigError(fmt::format("{}: inflates to more than {} bytes", file, kMaxInflatedBytes));
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
