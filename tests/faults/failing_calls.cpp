// A library for LD_PRELOAD that lets one call to the system fail, in whichever process of a program makes it:
//
//   GANYMEDE_FAIL=write:17 GANYMEDE_FAIL_COUNTS=FILE LD_PRELOAD=libfailing_calls.so ganymede …
//
// The 17th call of the group `write` fails as a full disk would; with `write:17+` all that follow fail too. FILE holds
// the counts of calls, eight bytes for each group, and is shared by all processes, so that "the 17th" is one call.
// Counting begins with main. Calls that the C library makes of itself, such as stdio's, are not seen.

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

enum Group { kWrite, kFsync, kRename, kOpen, kMalloc, kFork, kSocket, kSend, kRecv, kGroups };
constexpr const char* kNames[] = {"write", "fsync", "rename", "open", "malloc", "fork", "socket", "send", "recv"};
constexpr int kErrors[] = {ENOSPC, EIO, EACCES, EMFILE, ENOMEM, EAGAIN, EMFILE, ECONNRESET, ECONNRESET};

std::atomic<std::uint64_t>* counts = nullptr;  // in the shared file; null: nothing is counted
int failing = -1;
std::uint64_t number = 0;
bool stays = false;  // all calls after that one fail too

void begin() {
  const char* wanted = std::getenv("GANYMEDE_FAIL");
  const char* file = std::getenv("GANYMEDE_FAIL_COUNTS");
  if (file == nullptr) return;
  const int descriptor = ::open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (descriptor < 0 || ::ftruncate(descriptor, sizeof(std::uint64_t) * kGroups) != 0) return;
  void* memory = ::mmap(nullptr, sizeof(std::uint64_t) * kGroups, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  ::close(descriptor);
  if (memory == MAP_FAILED) return;
  for (int group = 0; wanted != nullptr && group < kGroups; ++group) {
    const std::size_t length = std::strlen(kNames[group]);
    if (std::strncmp(wanted, kNames[group], length) != 0 || wanted[length] != ':') continue;
    failing = group;
    char* rest = nullptr;
    number = std::strtoull(wanted + length + 1, &rest, 10);
    stays = *rest == '+';
  }
  counts = static_cast<std::atomic<std::uint64_t>*>(memory);
}

/// Counts the call; true if it is one that fails.
bool fails(Group group) {
  if (counts == nullptr) return false;
  const std::uint64_t count = counts[group].fetch_add(1) + 1;
  if (failing != group || count < number || (count > number && !stays)) return false;
  errno = kErrors[group];
  return true;
}

template <class Function>
Function next(const char* name) {
  return reinterpret_cast<Function>(::dlsym(RTLD_NEXT, name));
}

using Main = int(int, char**, char**);
Main* program = nullptr;

int counted_main(int count, char** arguments, char** environment) {
  begin();
  return program(count, arguments, environment);
}

}  // namespace

// Each has the name, the parameters and the result of what it stands in for.
#define GANYMEDE_CALL(result, group, name, parameters, arguments, failed) \
  result name parameters {                                                \
    if (fails(group)) return failed;                                      \
    static const auto real = next<result(*) parameters>(#name);           \
    return real arguments;                                                \
  }

extern "C" {

void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);

int __libc_start_main(Main* main, int count, char** arguments, void (*first)(), void (*last)(), void (*end)(),
                      void* stack) {
  program = main;
  using Start = int(Main*, int, char**, void (*)(), void (*)(), void (*)(), void*);
  return next<Start*>("__libc_start_main")(counted_main, count, arguments, first, last, end, stack);
}

// The C library has another name for each of these, so that looking them up needs no memory.
void* malloc(std::size_t size) { return fails(kMalloc) ? nullptr : __libc_malloc(size); }
void* calloc(std::size_t count, std::size_t size) { return fails(kMalloc) ? nullptr : __libc_calloc(count, size); }
void* realloc(void* old, std::size_t size) { return fails(kMalloc) ? nullptr : __libc_realloc(old, size); }
void* aligned_alloc(std::size_t alignment, std::size_t size) {
  return fails(kMalloc) ? nullptr : __libc_memalign(alignment, size);
}
int posix_memalign(void** out, std::size_t alignment, std::size_t size) {
  if (fails(kMalloc)) return ENOMEM;
  *out = __libc_memalign(alignment, size);
  return *out == nullptr ? ENOMEM : 0;
}

/// A failed write to standard error would only hide the reason, a disk that stays full fails no pipe, and nothing fails
/// an eventfd, which has no type of file.
bool may_fail(int file) {
  struct stat info {};
  if (file == STDERR_FILENO || ::fstat(file, &info) != 0) return false;
  return stays ? S_ISREG(info.st_mode) : (info.st_mode & S_IFMT) != 0;
}

ssize_t write(int file, const void* data, std::size_t size) {
  if (may_fail(file) && fails(kWrite)) return -1;
  static const auto real = next<ssize_t (*)(int, const void*, std::size_t)>("write");
  return real(file, data, size);
}
GANYMEDE_CALL(ssize_t, kWrite, writev, (int file, const iovec* pieces, int count), (file, pieces, count), -1)
GANYMEDE_CALL(ssize_t, kWrite, pwrite, (int file, const void* data, std::size_t size, off_t at), (file, data, size, at),
              -1)
GANYMEDE_CALL(int, kFsync, fsync, (int file), (file), -1)
GANYMEDE_CALL(int, kFsync, fdatasync, (int file), (file), -1)
GANYMEDE_CALL(int, kRename, rename, (const char* from, const char* to), (from, to), -1)
GANYMEDE_CALL(int, kRename, renameat, (int from_at, const char* from, int to_at, const char* to),
              (from_at, from, to_at, to), -1)
GANYMEDE_CALL(pid_t, kFork, fork, (), (), -1)
GANYMEDE_CALL(int, kSocket, socket, (int domain, int type, int protocol), (domain, type, protocol), -1)
GANYMEDE_CALL(int, kSocket, bind, (int at, const sockaddr* address, socklen_t size), (at, address, size), -1)
GANYMEDE_CALL(int, kSocket, listen, (int at, int waiting), (at, waiting), -1)
GANYMEDE_CALL(int, kSocket, accept, (int at, sockaddr* address, socklen_t* size), (at, address, size), -1)
GANYMEDE_CALL(int, kSocket, accept4, (int at, sockaddr* address, socklen_t* size, int flags),
              (at, address, size, flags), -1)
GANYMEDE_CALL(int, kSocket, connect, (int at, const sockaddr* address, socklen_t size), (at, address, size), -1)
GANYMEDE_CALL(int, kSocket, pipe, (int ends[2]), (ends), -1)
GANYMEDE_CALL(int, kSocket, pipe2, (int ends[2], int flags), (ends, flags), -1)
GANYMEDE_CALL(int, kSocket, eventfd, (unsigned start, int flags), (start, flags), -1)
GANYMEDE_CALL(ssize_t, kSend, send, (int at, const void* data, std::size_t size, int flags), (at, data, size, flags),
              -1)
GANYMEDE_CALL(ssize_t, kRecv, recv, (int at, void* data, std::size_t size, int flags), (at, data, size, flags), -1)

#define GANYMEDE_OPEN(name, before, before_names)                                \
  int name(before const char* path, int flags, ...) {                            \
    mode_t mode = 0;                                                             \
    if ((flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE) {            \
      va_list rest;                                                              \
      va_start(rest, flags);                                                     \
      mode = va_arg(rest, mode_t);                                               \
      va_end(rest);                                                              \
    }                                                                            \
    if (fails(kOpen)) return -1;                                                 \
    static const auto real = next<int (*)(before const char*, int, ...)>(#name); \
    return real(before_names path, flags, mode);                                 \
  }
#define GANYMEDE_FOLDER int at,
#define GANYMEDE_FOLDER_NAME at,
GANYMEDE_OPEN(open, , )
GANYMEDE_OPEN(open64, , )
GANYMEDE_OPEN(openat, GANYMEDE_FOLDER, GANYMEDE_FOLDER_NAME)
GANYMEDE_OPEN(openat64, GANYMEDE_FOLDER, GANYMEDE_FOLDER_NAME)
}
