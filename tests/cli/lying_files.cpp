// Preloaded into the program, it makes calls on files of shards end as on file systems that are slow, full or remote:
// LYING_FILES names what is wrong.

#include <dlfcn.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

namespace {

bool is_wrong(std::string_view what) {
  const char* wrong = std::getenv("LYING_FILES");
  return wrong != nullptr && std::string_view(wrong) == what;
}

bool is_of_shards(int file) {
  std::array<char, 4096> path{};
  const std::string link = "/proc/self/fd/" + std::to_string(file);
  if (readlink(link.c_str(), path.data(), path.size() - 1) < 0) return false;
  return std::string_view(path.data()).ends_with(".rows");
}

template <class Function>
Function real(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

int failed(int error) {
  errno = error;
  return -1;
}

}  // namespace

extern "C" {

int flock(int file, int operation) {
  return is_wrong("no-locks") ? failed(ENOLCK) : real<int (*)(int, int)>("flock")(file, operation);
}

ssize_t write(int file, const void* bytes, size_t count) {
  static unsigned calls = 0;
  if (is_of_shards(file)) {
    ++calls;
    if (is_wrong("interrupted") && calls % 3 == 0) return failed(EINTR);
    if (is_wrong("error") && calls == 7) return failed(EIO);
    if (is_wrong("short") && calls % 2 == 0) count = count / 2 + 1;
    if (is_wrong("slow")) usleep(20'000);
  }
  return real<ssize_t (*)(int, const void*, size_t)>("write")(file, bytes, count);
}

int fsync(int file) {
  return is_wrong("no-sync") && is_of_shards(file) ? failed(EIO) : real<int (*)(int)>("fsync")(file);
}

int fdatasync(int file) {
  return is_wrong("no-sync") && is_of_shards(file) ? failed(EIO) : real<int (*)(int)>("fdatasync")(file);
}

// NFS repeats a rename whose answer was lost, and then finds that the file is gone.
int rename(const char* from, const char* to) {
  if (is_wrong("stale")) return failed(ESTALE);
  const int result = real<int (*)(const char*, const char*)>("rename")(from, to);
  return is_wrong("renamed-twice") ? failed(ENOENT) : result;
}

// NFS repeats the making of a second name too, and then finds that it is there.
int link(const char* from, const char* to) {
  if (is_wrong("stale")) return failed(ESTALE);
  const int result = real<int (*)(const char*, const char*)>("link")(from, to);
  return is_wrong("renamed-twice") ? failed(EEXIST) : result;
}

}  // extern "C"
