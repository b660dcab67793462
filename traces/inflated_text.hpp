#pragma once
// The text of a file that may be gzipped.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

namespace ganymede::traces {

/// Inflated if it is gzipped. Throws ConfigError if it cannot be read, is damaged, or holds more than `most`
/// characters.
std::string inflated_text(const std::filesystem::path& file, std::int64_t most = std::int64_t{256} << 20);

/// Hands out the file's lines in pieces of some megabytes, each ending with a line of CSV: in no quoted cell.
void inflated_pieces(const std::filesystem::path& file, const std::function<void(std::string_view piece)>& take);

}  // namespace ganymede::traces
