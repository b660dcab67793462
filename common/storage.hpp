#pragma once
// The calls of the system by which the program's files change. All stand here, so that a test can replay what a crash,
// a full disk or a loss of power does at each of them. Their results are those of the calls with the same names.

#include <sys/types.h>

#include <cstddef>
#include <filesystem>
#include <functional>
#include <system_error>

namespace ganymede::storage {

enum class Call { create, write, sync, rename, link, cut, remove, make_folder, sync_folder };

/// A call that is about to happen. `path` is the file or folder that it names, `to` its new name; both are null for
/// calls that take an open file, which is -1 for the others.
struct Change {
  Call call;
  const char* path = nullptr;
  const char* to = nullptr;
  int file = -1;
};

/// The outcome of a call.
enum class Fate {
  done,
  failed,           ///< nothing happens, and the disk is full
  crashed,          ///< the program ends in place of the call
  half,             ///< half of a write happens, which the caller is told; any other call happens
  torn,             ///< half of a write, or all of another call, happens; then the program ends
  failed_for_ever,  ///< this call and all after it fail
  interrupted       ///< it happens, and then SIGTERM comes
};

/// Asked before each call while it is set; an exception of its own goes to the caller, but must not for `remove`, which
/// destructors call. Only tests set it.
void set_fates(std::function<Fate(const Change& change)> fate_of);

int create(const char* path, int flags);
ssize_t write(int file, const void* data, std::size_t size);
int sync(int file);
int rename(const char* from, const char* to);
int link(const char* from, const char* to);
int cut(int file, off_t size);
int remove(const char* path);
int make_folder(const char* path);
/// Makes the names in the folder last through a loss of power.
int sync_folder(const char* folder);

/// Makes the folder and those above it that are missing, whose names then last, too. Returns why that failed.
std::error_code make_folders(const std::filesystem::path& folder);

}  // namespace ganymede::storage
