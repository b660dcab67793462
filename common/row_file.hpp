#pragma once
// Files of rows to which one process appends while it may be killed at any moment, and which others read. A row is one
// line, "CHECKSUM TAB text": a row that was cut short or damaged is noticed, and costs only itself.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

namespace ganymede {

/// Reads the whole rows of a file in their order, in memory that does not grow with the file.
class RowReader {
 public:
  /// `damaged` gets the place of each row whose checksum does not fit, in words; it may be empty. A last line without
  /// its end is no damage, because it may be in writing. `from`: where to begin, which end() of an earlier reader has
  /// said. Throws ConfigError if the file cannot be read.
  explicit RowReader(const std::filesystem::path& path, std::function<void(const std::string& where)> damaged = {},
                     std::uint64_t from = 0);
  ~RowReader();
  RowReader(const RowReader&) = delete;
  RowReader& operator=(const RowReader&) = delete;

  /// Goes to the next whole row; false at the end of the file.
  bool next();
  /// The row's text, without checksum and end of line; valid until the next call of next().
  std::string_view text() const { return text_; }
  /// Where the text begins in the file, in bytes.
  std::uint64_t offset() const { return offset_; }
  /// Where the last line that was read ends, in bytes.
  std::uint64_t end() const { return end_; }

 private:
  bool next_line();

  std::filesystem::path path_;
  std::function<void(const std::string&)> damaged_;
  int file_ = -1;
  std::string buffer_;            ///< bytes that were read
  std::size_t begin_ = 0;         ///< of the next line, in the buffer
  std::string_view line_, text_;  ///< in the buffer
  std::uint64_t offset_ = 0, end_ = 0;
  std::uint64_t number_ = 0;  ///< of the line, from 1
};

/// Appends rows to a file, which it locks: a second writer of the same file is refused, also on another machine if the
/// file system passes locks on.
class RowWriter {
 public:
  /// Opens the file, or makes it, and waits a moment for the lock, because children of a killed process hold it until
  /// they have noticed. Throws ConfigError if the file cannot be opened or if another process writes to it.
  explicit RowWriter(const std::filesystem::path& path);
  ~RowWriter();
  RowWriter(const RowWriter&) = delete;
  RowWriter& operator=(const RowWriter&) = delete;

  /// Cuts off what an interruption left behind the last line.
  void cut(std::uint64_t size);
  /// Appends one row by one call of the system. `text` holds no line break. Throws std::runtime_error if it cannot be
  /// written, for example on a full disk; the file then ends with the row before.
  void append(std::string_view text);
  /// Waits until the rows are on the disk. Throws std::runtime_error if they cannot get there.
  void sync();
  /// True if the file system knows no locks, so that a second writer would not be noticed.
  bool unlocked() const { return unlocked_; }

 private:
  std::filesystem::path path_;
  int file_ = -1;
  bool unlocked_ = false;
  std::uint64_t size_ = 0;  ///< of the file, in bytes
};

}  // namespace ganymede
