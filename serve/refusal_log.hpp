#pragma once
// A log of the requests that were refused, by which the owner of the server sees who tries what.

#include <cstddef>
#include <filesystem>
#include <mutex>
#include <string_view>

namespace ganymede::serve {

class RefusalLog {
 public:
  static constexpr std::size_t kMaxBytes = 1 << 20;  ///< of the file; the one before it is kept too

  explicit RefusalLog(std::filesystem::path file) : file_(std::move(file)) {}

  /// Adds a line: time, HTTP status, method and path. The path must be without a query, which may hold the token.
  /// Characters that could steer a terminal are written as text. An error of the file system is no error of the
  /// request.
  void add(int status, std::string_view method, std::string_view path);

 private:
  std::filesystem::path file_;
  std::mutex mutex_;
};

}  // namespace ganymede::serve
