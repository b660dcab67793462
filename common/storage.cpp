#include "common/storage.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <utility>

namespace ganymede::storage {
namespace {

std::function<Fate(const Change&)> fates;

template <class Result>
Result by_fate(const Change& change, const std::function<Result(bool half)>& act) {
  const Fate fate = fates ? fates(change) : Fate::done;
  if (fate == Fate::done || fate == Fate::half) return act(fate == Fate::half);
  if (fate == Fate::interrupted) {
    const Result result = act(false);
    ::raise(SIGTERM);
    return result;
  }
  if (fate == Fate::failed_for_ever)  // a full disk fails no removal
    fates = [](const Change& next) { return next.call == Call::remove ? Fate::done : Fate::failed; };
  if (fate == Fate::torn) act(true);
  if (fate == Fate::torn || fate == Fate::crashed) ::kill(::getpid(), SIGKILL);
  errno = ENOSPC;
  return -1;
}

}  // namespace

void set_fates(std::function<Fate(const Change&)> fate_of) { fates = std::move(fate_of); }

int create(const char* path, int flags) {
  return by_fate<int>({Call::create, path}, [=](bool) { return ::open(path, flags | O_CREAT | O_CLOEXEC, 0666); });
}
ssize_t write(int file, const void* data, std::size_t size) {
  return by_fate<ssize_t>({.call = Call::write, .file = file},
                          [=](bool half) { return ::write(file, data, half ? size / 2 : size); });
}
int sync(int file) {
  return by_fate<int>({.call = Call::sync, .file = file}, [=](bool) { return ::fsync(file); });
}
int rename(const char* from, const char* to) {
  return by_fate<int>({Call::rename, from, to}, [=](bool) { return std::rename(from, to); });
}
int link(const char* from, const char* to) {
  return by_fate<int>({Call::link, from, to}, [=](bool) { return ::link(from, to); });
}
int cut(int file, off_t size) {
  return by_fate<int>({.call = Call::cut, .file = file}, [=](bool) { return ::ftruncate(file, size); });
}
int remove(const char* path) {
  return by_fate<int>({Call::remove, path}, [=](bool) { return ::unlink(path); });
}
int make_folder(const char* path) {
  return by_fate<int>({Call::make_folder, path}, [=](bool) { return ::mkdir(path, 0777); });
}
int sync_folder(const char* folder) {
  return by_fate<int>({Call::sync_folder, folder}, [=](bool) {
    const int opened = ::open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const int result = opened < 0 ? -1 : ::fsync(opened);
    if (opened >= 0) ::close(opened);
    return result;
  });
}

std::error_code make_folders(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::path made;
  for (const std::filesystem::path& name : folder) {
    made /= name;
    if (std::filesystem::is_directory(made, error)) continue;
    if (make_folder(made.c_str()) == 0) {
      // Some file systems cannot sync a folder.
      [[maybe_unused]] const int synced = sync_folder(made.has_parent_path() ? made.parent_path().c_str() : ".");
    } else if (const int why = errno; !std::filesystem::is_directory(made, error)) {  // no other process has made it
      // Beneath a file nothing can be made: only the folder itself "exists" as another thing.
      return {why == EEXIST && made != folder ? ENOTDIR : why, std::generic_category()};
    }
  }
  return {};
}

}  // namespace ganymede::storage
