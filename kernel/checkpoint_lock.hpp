#pragma once
// One training at a time keeps its checkpoints in a folder: two would remove each other's.

#include <filesystem>

namespace ganymede::kernel {

/// Holds the file `lock` of the folder while it lives. The system gives it up when the process ends, however it ends;
/// the file stays, with the process that held it last. The processes of one training share the lock of the first.
class CheckpointLock {
 public:
  /// ConfigError that names the holder when another training has it, and where the file cannot be made. A file system
  /// that knows no locks has none.
  explicit CheckpointLock(const std::filesystem::path& directory);
  CheckpointLock(const CheckpointLock&) = delete;
  CheckpointLock& operator=(const CheckpointLock&) = delete;
  ~CheckpointLock();

 private:
  int file_;
};

}  // namespace ganymede::kernel
