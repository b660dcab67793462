#include "kernel/data/gzip.hpp"

#include <fmt/format.h>
#include <zlib.h>

#include <memory>

#include "common/errors.hpp"
#include "common/file.hpp"

namespace ganymede::kernel {
namespace {

constexpr std::size_t kMost = std::size_t{4} << 30;
constexpr std::size_t kPiece = std::size_t{1} << 20;
constexpr int kGzip = 16 + MAX_WBITS;  // how zlib is told to expect gzip's header and checksum

std::string inflate_all(const std::string& file, const std::string& packed) {
  z_stream stream{};
  if (inflateInit2(&stream, kGzip) != Z_OK) throw Failure("zlib: cannot begin to inflate");
  const std::unique_ptr<z_stream, int (*)(z_stream*)> end(&stream, inflateEnd);
  std::string out;
  std::size_t taken = 0;
  for (int state = Z_OK; state != Z_STREAM_END;) {
    if (stream.avail_in == 0) {
      if (taken == packed.size())
        throw ConfigError(
            fmt::format("{}: found the end of the file, expected more of its gzip: it is cut short", file));
      const std::size_t piece = std::min(kPiece, packed.size() - taken);
      stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data() + taken));  // zlib only reads
      stream.avail_in = static_cast<uInt>(piece);
      taken += piece;
    }
    const std::size_t before = out.size();
    if (before >= kMost) throw ConfigError(fmt::format("{}: inflates to more than {} bytes", file, kMost));
    out.resize(before + kPiece);
    stream.next_out = reinterpret_cast<Bytef*>(out.data() + before);
    stream.avail_out = static_cast<uInt>(kPiece);
    state = inflate(&stream, Z_NO_FLUSH);
    out.resize(before + kPiece - stream.avail_out);
    if (state != Z_OK && state != Z_STREAM_END && state != Z_BUF_ERROR)
      throw ConfigError(
          fmt::format("{}: found damaged gzip data ({})", file, stream.msg != nullptr ? stream.msg : "?"));
  }
  return out;
}

}  // namespace

std::string read_maybe_gzip(const std::filesystem::path& file) {
  std::string bytes = read_file(file);
  return bytes.starts_with("\x1f\x8b") ? inflate_all(file.string(), bytes) : bytes;
}

}  // namespace ganymede::kernel
