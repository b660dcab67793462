#pragma once
// Checkpoint files. A training that resumes from one continues as if it had never stopped: the file holds weights,
// moving statistics, Adam's moments and counts, the state of every random stream and the position in the data.
//
// A file is the 8 bytes "GANYCKP1", the FNV-1a hash of all that follows (8 bytes, little-endian), and a safetensors
// file whose metadata hold everything that is not a tensor. It is written whole or not at all; the two newest are kept.

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/random.hpp"
#include "kernel/weights.hpp"

namespace ganymede::kernel {

/// Typed access to a checkpoint's metadata. Each call throws ConfigError with the file and the key if the key is
/// missing or its value is not of the kind that is asked for.
class Metadata {
 public:
  /// Keeps references: both arguments must outlive this object.
  Metadata(const std::map<std::string, std::string>& values, const std::string& file) : values_(values), file_(file) {}

  const std::string& text(const std::string& key) const;
  std::int64_t number(const std::string& key, std::int64_t min) const;  ///< an integer, at least `min`
  RandomStream::State state(const std::string& key) const;
  void expect(const std::string& key, const std::string& expected) const;  ///< throws if the value is another

 private:
  [[noreturn]] void refuse(const std::string& key) const;

  const std::map<std::string, std::string>& values_;
  const std::string& file_;
};

struct Checkpoint {
  std::string file;
  SafeTensors content;

  Metadata metadata() const { return {content.metadata, file}; }
};

/// Reads the bytes of a checkpoint file. Throws ConfigError, which names `file`, if they are none, or are damaged.
Checkpoint read_checkpoint(const std::string& file, std::string_view bytes);

/// The bytes of a checkpoint file.
std::string write_checkpoint(const SafeTensors& content);

/// Writes DIR/step-NNNNNNNNNNNN.ckpt and then removes all but the two newest checkpoints. Throws ConfigError if the
/// file cannot be written; older checkpoints then stay.
void save_checkpoint(const std::filesystem::path& directory, std::int64_t step, const SafeTensors& content);

/// Reads the newest checkpoint that is not damaged, and adds a remark for each newer one that is. Returns nothing if
/// the directory has no checkpoints or does not exist. Throws ConfigError if all of its checkpoints are damaged.
std::optional<Checkpoint> last_checkpoint(const std::filesystem::path& directory, std::vector<std::string>& remarks);

/// True for the names that a training gives to files in its directory of checkpoints.
bool is_name_of_checkpoints(const std::string& name);

/// Throws the error that save_checkpoint would throw if the directory cannot be written to. Called before long work.
void check_checkpoint_directory(const std::filesystem::path& directory);

/// True if the directory has any checkpoint, damaged or not.
bool has_checkpoints(const std::filesystem::path& directory);

// A lock by which only one training at a time keeps its checkpoints in a folder: two would remove each other's.

/// Locks the folder's file `lock`, which names the holder, for the object's lifetime, and removes it then unless
/// another file has that name by then. The system releases the lock when the process ends, even by a crash, after which
/// the file stays. In a training by several processes only the first takes the lock.
class CheckpointLock {
 public:
  /// Throws ConfigError with the holder's name if another training holds the lock, and if the file cannot be created or
  /// is a user's own. On a file system without locks nothing is locked.
  explicit CheckpointLock(const std::filesystem::path& directory);
  CheckpointLock(const CheckpointLock&) = delete;
  CheckpointLock& operator=(const CheckpointLock&) = delete;
  ~CheckpointLock();

 private:
  std::filesystem::path path_;
  int file_ = -1;
};

}  // namespace ganymede::kernel
