#pragma once
// Reading whole files with located errors, and writing so that a reader sees all of the new content or none of it.

#include <filesystem>
#include <string>
#include <string_view>

namespace ganymede {

/// The file's whole content. Throws ConfigError with path and reason if it is missing, a directory, unreadable, or
/// larger than 2 GiB.
std::string read_file(const std::filesystem::path& path);

/// Writes a temporary file beside `path`, fsyncs and renames it, so that `path` holds the old content or the new one,
/// never half. Throws ConfigError with path and reason if it cannot be created there (no such directory, no
/// permission); no temporary file is left behind.
void write_file(const std::filesystem::path& path, std::string_view content);

/// Throws the error that write_file would throw if `path` cannot be written. Called before long work, so that it is not
/// lost at its end.
void check_writable(const std::filesystem::path& path);

}  // namespace ganymede
