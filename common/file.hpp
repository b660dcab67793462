#pragma once
// Files: whole reads with located errors, and writes that are seen whole or not at all.

#include <filesystem>
#include <string>
#include <string_view>

namespace ganymede {

/// The whole content. Missing, a directory or unreadable: ConfigError naming the path and the reason.
std::string read_file(const std::filesystem::path& path);

/// Writes a temporary file beside `path`, fsyncs and renames it, so that `path` holds the old content or the new one,
/// never half. Not writable (no such directory, no permission, disk full): ConfigError naming path and reason; nothing
/// is left.
void write_file(const std::filesystem::path& path, std::string_view content);

/// Fails now, with the error that write_file would give, if `path` cannot be written: called before long work.
void check_writable(const std::filesystem::path& path);

}  // namespace ganymede
