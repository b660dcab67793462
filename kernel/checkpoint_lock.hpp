#pragma once
// A lock by which only one training at a time keeps its checkpoints in a folder: two would remove each other's.

#include <filesystem>

namespace ganymede::kernel {

/// Locks the folder's file `lock` for the object's lifetime. The system releases the lock when the process ends, even
/// by a crash; the file stays and names the last holder. In a training by several processes only the first takes the
/// lock.
class CheckpointLock {
 public:
  /// Throws ConfigError with the holder's name if another training holds the lock, and if the file cannot be created.
  /// On a file system without locks nothing is locked.
  explicit CheckpointLock(const std::filesystem::path& directory);
  CheckpointLock(const CheckpointLock&) = delete;
  CheckpointLock& operator=(const CheckpointLock&) = delete;
  ~CheckpointLock();

 private:
  int file_;
};

}  // namespace ganymede::kernel
