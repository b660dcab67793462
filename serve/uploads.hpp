#pragma once
// Step traces and platform files that the user has sent, in DATA/uploads. Each is one file, called by a number that the
// server gives; the name that it had on the user's machine is only shown.

#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

#include "platforms/platform.hpp"
#include "traces/step_trace.hpp"

namespace ganymede::serve {

enum class UploadKind { trace, platform };

struct Upload {
  int id = 0;
  UploadKind kind = UploadKind::trace;
  std::string name;                                     ///< for people
  std::string text;                                     ///< as it was sent
  std::unique_ptr<const traces::StepTrace> trace;       ///< not null for UploadKind::trace
  std::unique_ptr<const platforms::Platform> platform;  ///< not null for UploadKind::platform

  /// "upload:3", by which a form names it.
  std::string key() const;
  /// "trace-3.json": its name in the folder of a job that uses it.
  std::string file() const;
};
using Uploads = std::vector<std::shared_ptr<const Upload>>;

/// Thrown for an id that no upload has.
struct NoSuchUpload : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class UploadStore {
 public:
  static constexpr std::size_t kMaxBytes = 8 << 20;  ///< of one file
  static constexpr std::size_t kMaxFiles = 32;
  static constexpr std::size_t kMaxName = 100;  ///< bytes of the shown name

  /// Reads what `folder` holds. A file that cannot be read is left out, and `remarks` says so.
  UploadStore(std::filesystem::path folder, std::vector<std::string>& remarks);

  /// Checks the text as the command would that reads it, keeps it, and returns its id. Throws ConfigError with the
  /// place in the text for what is wrong with it, and if there are kMaxFiles already.
  int add(const std::string& kind, const std::string& name, std::string text);
  /// Removes it. Jobs have copies of their own. Throws NoSuchUpload.
  void forget(int id);
  /// All of them, by id.
  Uploads all() const;

 private:
  std::filesystem::path file_of(int id) const;

  std::filesystem::path folder_;
  mutable std::mutex mutex_;
  std::map<int, std::shared_ptr<const Upload>> uploads_;
  int last_ = 0;
};

}  // namespace ganymede::serve
