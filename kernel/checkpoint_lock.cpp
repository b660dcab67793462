#include "kernel/checkpoint_lock.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string>

#include "common/errors.hpp"

namespace ganymede::kernel {
namespace {

/// The line that the lock's holder wrote: "process 4711 on host-a".
std::string holder(int file) {
  std::array<char, 200> text{};
  const ssize_t got = ::pread(file, text.data(), text.size(), 0);
  std::string line(text.data(), static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  line.erase(std::find_if(line.begin(), line.end(), [](unsigned char c) { return c < 0x20 || c > 0x7e; }), line.end());
  return line.empty() ? "another process" : line;
}

}  // namespace

CheckpointLock::CheckpointLock(const std::filesystem::path& directory) {
  const std::filesystem::path path = directory / "lock";
  file_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
  if (file_ < 0) throw ConfigError(fmt::format("--checkpoint: {}: {}", path.string(), std::strerror(errno)));
  if (::flock(file_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    const std::string other = holder(file_);
    ::close(file_);
    throw ConfigError(
        fmt::format("--checkpoint: {}: found a training that keeps its checkpoints there and still runs ({}), expected "
                    "a directory of this training's own",
                    directory.string(), other));
  }
  std::array<char, 65> host{};
  ::gethostname(host.data(), host.size() - 1);
  const std::string line = fmt::format("process {} on {}\n", ::getpid(), host.data());
  // The line is only for messages; on a full disk it is left out.
  if (::ftruncate(file_, 0) == 0) [[maybe_unused]]
    const ssize_t written = ::pwrite(file_, line.data(), line.size(), 0);
}

CheckpointLock::~CheckpointLock() { ::close(file_); }

}  // namespace ganymede::kernel
