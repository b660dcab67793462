#include "traces/inflated_text.hpp"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <limits>
#include <memory>

#include "common/errors.hpp"
#include "common/file.hpp"

namespace ganymede::traces {
namespace {

constexpr std::size_t kPiece = std::size_t{4} << 20;

/// Hands out what the file holds, some megabytes at a time.
void read_inflated(const std::filesystem::path& file, std::int64_t most,
                   const std::function<void(std::string_view)>& take) {
  const std::unique_ptr<gzFile_s, int (*)(gzFile)> in(::gzopen(file.c_str(), "rb"), ::gzclose);
  if (in == nullptr || std::filesystem::is_directory(file)) (void)read_file(file);  // which says why it cannot
  std::string buffer(kPiece, '\0');
  std::int64_t all = 0;
  for (;;) {
    const int got = ::gzread(in.get(), buffer.data(), static_cast<unsigned>(buffer.size()));
    int error = Z_OK;
    if (got <= 0) ::gzerror(in.get(), &error);
    if (got < 0 || error != Z_OK)
      throw ConfigError(fmt::format("{}: its compressed data is damaged or cut short", file.string()));
    if (got == 0) return;
    if ((all += got) > most)
      throw ConfigError(fmt::format("{}: found more than {} MiB in it, expected less", file.string(), most >> 20));
    take(std::string_view(buffer).substr(0, static_cast<std::size_t>(got)));
  }
}

}  // namespace

std::string inflated_text(const std::filesystem::path& file, std::int64_t most) {
  std::string text;
  read_inflated(file, most, [&](std::string_view part) { text += part; });
  return text;
}

void inflated_pieces(const std::filesystem::path& file, const std::function<void(std::string_view)>& take) {
  std::string kept;
  bool quoted = false;  // at the end of what is kept
  read_inflated(file, std::numeric_limits<std::int64_t>::max(), [&](std::string_view part) {
    std::size_t end = std::string::npos;  // of the last whole line
    for (std::size_t i = 0; i < part.size(); ++i) {
      if (part[i] == '"') quoted = !quoted;
      if (part[i] == '\n' && !quoted) end = i + 1;
    }
    if (end == std::string::npos) {
      kept += part;
      if (kept.size() > 64 * kPiece)
        throw ConfigError(
            fmt::format("{}: a line has more than {} MiB: is a quote not closed?", file.string(), (64 * kPiece) >> 20));
      return;
    }
    take(kept + std::string(part.substr(0, end)));
    kept = part.substr(end);
  });
  if (!kept.empty()) take(kept);
}

}  // namespace ganymede::traces
