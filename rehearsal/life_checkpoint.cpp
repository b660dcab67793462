#include "rehearsal/life_checkpoint.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <new>

#include "common/errors.hpp"
#include "rehearsal/clock.hpp"

namespace ganymede::rehearsal {
namespace {

constexpr std::size_t kPiece = std::size_t{1} << 16;

/// Calls `move` for each piece of a file, evenly until the moment `until`.
template <class Move>
void pace(std::size_t bytes, double until, const Move& move) {
  const double begin = machine_time();
  for (std::size_t from = 0; from < bytes; from += kPiece) {
    const std::size_t length = std::min(kPiece, bytes - from);
    if (move(from, length) != static_cast<ssize_t>(length))
      throw Failure(fmt::format("cannot use the checkpoint of the rehearsal: {}", std::strerror(errno)));
    sleep_until(begin + (until - begin) * static_cast<double>(from + length) / static_cast<double>(bytes));
  }
}

}  // namespace

LifeCheckpoint::LifeCheckpoint(double bytes)
    : words_(static_cast<std::size_t>(std::clamp(bytes, 64.0, double{kMostBytes})) / sizeof(std::uint64_t)) {
  std::string name = (std::filesystem::temp_directory_path() / "ganymede-life-XXXXXX").string();
  file_ = ::mkostemp(name.data(), O_CLOEXEC);
  if (file_ < 0) throw Failure(fmt::format("cannot write a checkpoint to {}: {}", name, std::strerror(errno)));
  ::unlink(name.c_str());
  void* const memory = ::mmap(nullptr, sizeof *complete_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    ::close(file_);
    throw Failure("cannot share memory with the workers of a rehearsal");
  }
  complete_ = new (memory) std::atomic<std::int64_t>(0);
}

LifeCheckpoint::~LifeCheckpoint() {
  ::munmap(complete_, sizeof *complete_);
  ::close(file_);
}

/// Numbers that differ by checkpoint, so that a wrong or torn one is seen.
std::vector<std::uint64_t> LifeCheckpoint::content(std::int64_t number) const {
  std::vector<std::uint64_t> out(words_);
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<std::uint64_t>(number) * 0x9E3779B97F4A7C15U + i;
  return out;
}

void LifeCheckpoint::write(double until) {
  const std::int64_t number = *complete_ + 1;
  const std::vector<std::uint64_t> words = content(number);
  const auto* const bytes = reinterpret_cast<const char*>(words.data());
  const std::size_t size = words.size() * sizeof words[0], place = static_cast<std::size_t>(number % 2) * size;
  pace(size, until, [&](std::size_t from, std::size_t length) {
    const ssize_t wrote = ::pwrite(file_, bytes + from, length, static_cast<off_t>(place + from));
    // The disk is given its work while the rest is still paced.
    if (from + length == size && ::fdatasync(file_) != 0) return ssize_t{-1};
    return wrote;
  });
  *complete_ = number;
}

void LifeCheckpoint::read(double until) const {
  const std::int64_t number = *complete_;
  std::vector<std::uint64_t> words(words_);
  auto* const bytes = reinterpret_cast<char*>(words.data());
  const std::size_t size = words.size() * sizeof words[0], place = static_cast<std::size_t>(number % 2) * size;
  pace(size, until, [&](std::size_t from, std::size_t length) {
    return ::pread(file_, bytes + from, length, static_cast<off_t>(place + from));
  });
  if (number == 0 || words != content(number))
    throw Failure(fmt::format("checkpoint {} of the rehearsal is not what was written", number));
}

}  // namespace ganymede::rehearsal
