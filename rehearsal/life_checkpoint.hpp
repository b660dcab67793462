#pragma once
// The checkpoint of a rehearsed life: real bytes on a disk, written and read in the time that the scenario's storage
// takes.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace ganymede::rehearsal {

/// A file without a name, which is gone when its last process is. It has two places: a checkpoint is written to the one
/// that does not hold the last complete checkpoint, synced, and only then counts. A process that is killed while it
/// writes leaves the last one as it was.
class LifeCheckpoint {
 public:
  static constexpr std::size_t kMostBytes = std::size_t{1} << 20;  ///< of a larger one, only so much is written

  /// In the system's folder for temporary files. Throws Failure. Made before the processes that use it are forked.
  explicit LifeCheckpoint(double bytes);
  ~LifeCheckpoint();
  LifeCheckpoint(const LifeCheckpoint&) = delete;
  LifeCheckpoint& operator=(const LifeCheckpoint&) = delete;

  /// Writes the next checkpoint, which is complete at the moment `until` of the machine's clock or as soon after it as
  /// the disk is done.
  void write(double until);
  /// Reads the last complete one until that moment. Throws Failure if it is not what was written.
  void read(double until) const;
  std::int64_t complete() const { return *complete_; }  ///< checkpoints that were completed

 private:
  std::vector<std::uint64_t> content(std::int64_t number) const;

  std::size_t words_;
  int file_;
  std::atomic<std::int64_t>* complete_;  // shared
};

}  // namespace ganymede::rehearsal
