#pragma once
// A JSON file as a stream of characters, which the JSON parser reads: it may be gigabytes long.

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <iterator>
#include <memory>
#include <string>
#include <system_error>

#include "common/errors.hpp"

namespace ganymede::traces {

/// Reads a file character by character, inflated if it is gzipped. Numbers that JSON does not have, and that Kineto
/// writes all the same for an occupancy that it cannot compute (nan, inf, NaN, Infinity), are read as 0.
class InflatedFile {
 public:
  /// Throws ConfigError while it is read once it holds more than `most` characters; 0: than kMostInflated times the
  /// size of the file and 64 MiB.
  InflatedFile(const std::filesystem::path& file, const std::function<void(std::int64_t)>& progress, std::int64_t most)
      : name_(file.string()), progress_(progress), most_(most), file_(::gzopen(name_.c_str(), "rb"), ::gzclose) {
    if (file_ == nullptr || std::filesystem::is_directory(file))
      throw ConfigError(fmt::format("{}: cannot be read", name_));
    std::error_code is_pipe;
    const auto size = static_cast<std::int64_t>(std::filesystem::file_size(file, is_pipe));
    if (most_ == 0) most_ = is_pipe ? kPipe : kAlways + kMostInflated * size;
    fill();
  }

  bool at_end() const { return at_ == size_; }
  char now() const { return is_number_ ? '0' : buffer_[at_]; }
  void next() {
    if (is_number_) {
      while (!at_end() && std::isalpha(static_cast<unsigned char>(buffer_[at_])) != 0) step();
    } else {
      const char passed = buffer_[at_];
      step();
      if (is_escaped_)
        is_escaped_ = false;
      else if (passed == '"')
        in_string_ = !in_string_;
      else
        is_escaped_ = in_string_ && passed == '\\';
    }
    is_number_ = !at_end() && !in_string_ && begins_a_number();
  }
  bool damaged() const { return damaged_; }  ///< the compressed data ends before it should, or is no such data

 private:
  /// True unless it is a word of JSON: outside of strings these begin with t, f and "nu".
  bool begins_a_number() const {
    const char first = buffer_[at_];
    if (first == 'n') return at_ + 1 < size_ && buffer_[at_ + 1] == 'a';
    return first == 'N' || first == 'I' || first == 'i';
  }
  void step() {
    ++at_;
    if (size_ - at_ < 2 && !ended_) fill();  // there is always one to look ahead at
  }
  void fill() {
    const std::size_t kept = size_ - at_;
    std::copy_n(buffer_.begin() + static_cast<std::ptrdiff_t>(at_), kept, buffer_.begin());
    const int got = ::gzread(file_.get(), buffer_.data() + kept, static_cast<unsigned>(buffer_.size() - kept));
    damaged_ = got < 0;
    if ((read_ += std::max(got, 0)) > most_)
      throw ConfigError(fmt::format("{}: found more than {} MiB in it: --max-size allows more", name_, most_ >> 20));
    ended_ = got <= 0;
    if (progress_) progress_(::gzoffset(file_.get()));
    at_ = 0;
    size_ = kept + static_cast<std::size_t>(std::max(got, 0));
  }

  /// The format allows a thousand times, which would fill memory from a file of some MB; traces of the profiler inflate
  /// to 10 to 30 times their size.
  static constexpr std::int64_t kMostInflated = 100, kAlways = std::int64_t{64} << 20, kPipe = std::int64_t{4} << 30;
  std::string name_;
  const std::function<void(std::int64_t)>& progress_;
  std::int64_t most_, read_ = 0;
  std::unique_ptr<gzFile_s, int (*)(gzFile)> file_;
  std::array<char, 1 << 16> buffer_{};
  std::size_t at_ = 0, size_ = 0;
  bool ended_ = false, damaged_ = false;
  bool in_string_ = false, is_escaped_ = false, is_number_ = false;
};

/// An input iterator over the characters of a file, from which the JSON parser reads.
class InflatedCursor {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = char;

  explicit InflatedCursor(InflatedFile* characters = nullptr) : characters_(characters) {}
  char operator*() const { return characters_->now(); }
  InflatedCursor& operator++() {
    characters_->next();
    return *this;
  }
  InflatedCursor operator++(int) {
    InflatedCursor before = *this;
    ++*this;
    return before;
  }
  bool operator==(const InflatedCursor& other) const { return at_end() == other.at_end(); }

 private:
  bool at_end() const { return characters_ == nullptr || characters_->at_end(); }
  InflatedFile* characters_;
};

}  // namespace ganymede::traces
