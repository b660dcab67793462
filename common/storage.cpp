#include "common/storage.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <utility>

namespace ganymede::storage {
namespace {

std::function<Fate(Call)> fates;

template <class Result>
Result by_fate(Call call, const std::function<Result(bool half)>& act) {
  const Fate fate = fates ? fates(call) : Fate::done;
  if (fate == Fate::done) return act(false);
  if (fate == Fate::failed_for_ever) fates = [](Call) { return Fate::failed; };
  if (fate == Fate::torn) act(true);
  if (fate == Fate::torn || fate == Fate::crashed) ::kill(::getpid(), SIGKILL);
  errno = ENOSPC;
  return -1;
}

}  // namespace

void set_fates(std::function<Fate(Call)> fate_of) { fates = std::move(fate_of); }

int create(const char* path, int flags) {
  return by_fate<int>(Call::create, [=](bool) { return ::open(path, flags | O_CREAT | O_CLOEXEC, 0666); });
}
ssize_t write(int file, const void* data, std::size_t size) {
  return by_fate<ssize_t>(Call::write, [=](bool half) { return ::write(file, data, half ? size / 2 : size); });
}
int sync(int file) {
  return by_fate<int>(Call::sync, [=](bool) { return ::fsync(file); });
}
int rename(const char* from, const char* to) {
  return by_fate<int>(Call::rename, [=](bool) { return std::rename(from, to); });
}
int link(const char* from, const char* to) {
  return by_fate<int>(Call::link, [=](bool) { return ::link(from, to); });
}
int cut(int file, off_t size) {
  return by_fate<int>(Call::cut, [=](bool) { return ::ftruncate(file, size); });
}

}  // namespace ganymede::storage
