#include "common/row_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <stdexcept>
#include <thread>

#include "common/errors.hpp"
#include "common/random.hpp"
#include "common/storage.hpp"

namespace ganymede {
namespace {

constexpr std::size_t kReadBytes = std::size_t{1} << 20U;
/// Longest line that is taken for a row. A longer one is damage, for example a file of zeros, and is passed over.
constexpr std::size_t kLongestLine = std::size_t{64} << 20U;
constexpr std::size_t kSumDigits = 16;
constexpr auto kLockPatience = std::chrono::seconds(3);
constexpr auto kLockPause = std::chrono::milliseconds(50);

[[noreturn]] void refuse_rows(const std::filesystem::path& path, const char* what) {
  throw ConfigError(fmt::format("{}: {}: {}", path.string(), what, std::strerror(errno)));
}

/// True if the line is a row whose checksum fits.
bool is_whole_row(std::string_view line) {
  std::uint64_t sum = 0;
  if (line.size() <= kSumDigits || line[kSumDigits] != '\t') return false;
  const auto [end, error] = std::from_chars(line.data(), line.data() + kSumDigits, sum, 16);
  return error == std::errc{} && end == line.data() + kSumDigits && sum == fnv1a(line.substr(kSumDigits + 1));
}

}  // namespace

RowReader::RowReader(const std::filesystem::path& path, std::function<void(const std::string&)> damaged,
                     std::uint64_t from)
    : path_(path),
      damaged_(std::move(damaged)),
      file_(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC)),
      end_(from) {
  // A pipe or a device may never end.
  if (struct stat info{}; file_ >= 0 && (::fstat(file_, &info) != 0 || !S_ISREG(info.st_mode))) {
    ::close(file_);
    throw ConfigError(path.string() + ": is no regular file, expected rows that this program has written");
  }
  if (file_ < 0 || ::lseek(file_, static_cast<off_t>(from), SEEK_SET) < 0) refuse_rows(path, "cannot be read");
}

RowReader::~RowReader() { ::close(file_); }

bool RowReader::next() {
  while (next_line()) {
    if (is_whole_row(line_)) {
      text_ = line_.substr(kSumDigits + 1);
      offset_ = end_ - 1 - text_.size();
      return true;
    }
    if (damaged_) damaged_(fmt::format("{}: line {}", path_.string(), number_));
  }
  return false;
}

/// Goes to the next line that has an end.
bool RowReader::next_line() {
  std::size_t searched = begin_;
  for (;;) {
    const std::size_t found = buffer_.find('\n', searched);
    if (found != std::string::npos) {
      line_ = std::string_view(buffer_).substr(begin_, found - begin_);
      end_ += line_.size() + 1;
      begin_ = found + 1;
      ++number_;
      return true;
    }
    buffer_.erase(0, begin_);
    begin_ = 0;
    if (buffer_.size() > kLongestLine) {  // keeps one byte, so that the line stays damaged
      end_ += buffer_.size() - 1;
      buffer_.resize(1);
    }
    searched = buffer_.size();
    buffer_.resize(searched + kReadBytes);
    const ssize_t got = ::read(file_, buffer_.data() + searched, kReadBytes);
    buffer_.resize(searched + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    if (got < 0 && errno != EINTR) refuse_rows(path_, "cannot be read");
    if (got == 0) return false;
  }
}

RowWriter::RowWriter(const std::filesystem::path& path)
    : path_(path), file_(storage::create(path.c_str(), O_WRONLY | O_APPEND)) {
  if (file_ < 0) refuse_rows(path, "cannot be written");
  const auto give_up = std::chrono::steady_clock::now() + kLockPatience;
  while (::flock(file_, LOCK_EX | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    if (errno != EWOULDBLOCK) {  // for example a file system without a lock service
      unlocked_ = true;
      break;
    }
    if (std::chrono::steady_clock::now() > give_up) {
      ::close(file_);
      throw ConfigError(fmt::format("{}: another process writes to it; each shard has one writer", path.string()));
    }
    std::this_thread::sleep_for(kLockPause);
  }
  struct stat info {};
  if (::fstat(file_, &info) == 0) size_ = static_cast<std::uint64_t>(info.st_size);
}

RowWriter::~RowWriter() { ::close(file_); }

void RowWriter::cut(std::uint64_t size) {
  if (size == size_) return;
  if (storage::cut(file_, static_cast<off_t>(size)) != 0) refuse_rows(path_, "cannot be written");
  size_ = size;
}

void RowWriter::append(std::string_view text) {
  assert(text.find('\n') == std::string_view::npos);
  const std::string row = fmt::format("{:016x}\t{}\n", fnv1a(text), text);
  for (std::size_t done = 0; done < row.size();) {
    const ssize_t wrote = storage::write(file_, row.data() + done, row.size() - done);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) {
      const int why = errno;
      // If this fails too, the checksum shows that the row is no whole one.
      [[maybe_unused]] const int cut_off = storage::cut(file_, static_cast<off_t>(size_));
      throw std::runtime_error(fmt::format("{}: cannot be written: {}", path_.string(), std::strerror(why)));
    }
    done += static_cast<std::size_t>(wrote);
  }
  size_ += row.size();
}

void RowWriter::sync() {
  if (storage::sync(file_) != 0)
    throw std::runtime_error(fmt::format("{}: cannot be written: {}", path_.string(), std::strerror(errno)));
}

}  // namespace ganymede
