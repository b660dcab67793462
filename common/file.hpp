#pragma once
// Reading whole files with located errors, and writing so that a reader sees all of the new content or none of it.

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

namespace ganymede {

/// The file's whole content. Throws ConfigError with path and reason if it is missing, a directory, unreadable, or
/// larger than 2 GiB. A pipe gives the same each time that it is named, as a file does.
std::string read_file(const std::filesystem::path& path);

/// Writes a temporary file beside `path`, fsyncs and renames it, so that `path` holds the old content or the new one,
/// never half, also after a loss of power. The file that is replaced leaves its permissions (and owner, where that is
/// allowed) to the new one. A symbolic link is followed; a pipe or device is written to directly. Throws ConfigError
/// with path and reason if the file cannot be created there (no such directory, no permission) or if the one that is
/// there is protected from this user, and std::runtime_error if writing fails later (a full disk). No temporary file is
/// left behind.
void write_file(const std::filesystem::path& path, std::string_view content);

/// The same for a file that must not be there yet. Returns false, and leaves it as it is, if it is: of programs that
/// create one file at the same moment, one succeeds.
bool create_file(const std::filesystem::path& path, std::string_view content);

/// Where write_file() puts what is written to this name: symbolic links are followed, also to a file that is not there
/// yet. Absolute; two names of one file that is to be written have the same.
std::filesystem::path written_path(const std::filesystem::path& named);

/// Takes the next piece of a file's content.
using ContentSink = std::function<void(std::string_view piece)>;

/// The same for content that would not fit in memory: `produce` hands it over piece by piece. If `produce` throws, the
/// old content stays.
void write_file(const std::filesystem::path& path, const std::function<void(const ContentSink& sink)>& produce);

/// Throws ConfigError, as write_file would, if `path` cannot be written. Programs call it before long work, whose
/// results could otherwise not be stored at the end. It also removes temporary files of write_file for `path` that are
/// older than a day: of programs that were killed while they wrote.
void check_writable(const std::filesystem::path& path);

/// Removes the temporary files that write_file is writing at this moment. Only for a program that ends at once without
/// unwinding, on a signal or for lack of memory: it takes no memory and may be called by a signal's handler.
void remove_unfinished_files() noexcept;

}  // namespace ganymede
