#pragma once
// Where a training stands, in a file from which it goes on as if it had never stopped: weights, moving statistics,
// Adam's moments and counts, every random stream, the place in the data.
//
// A file is 8 bytes "GANYCKP1", the FNV-1a sum of all that follows in 8 bytes, little-endian, and a safetensors file
// whose metadata hold what is no tensor. It is written beside its place, fsynced and renamed; the two newest are kept.

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/random.hpp"
#include "kernel/safetensors.hpp"

namespace ganymede::kernel {

/// What a checkpoint holds beside its tensors. ConfigError naming `file` and the key when it is not what is asked for.
class Metadata {
 public:
  /// Both must outlive this.
  Metadata(const std::map<std::string, std::string>& values, const std::string& file) : values_(values), file_(file) {}

  const std::string& text(const std::string& key) const;
  std::int64_t number(const std::string& key, std::int64_t least) const;
  RandomStream::State state(const std::string& key) const;
  void expect(const std::string& key, const std::string& expected) const;

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

/// The file's bytes.
std::string write_checkpoint(const SafeTensors& content);

/// Writes DIR/step-NNNNNNNNNNNN.ckpt and then removes all but the two newest. ConfigError when that cannot be written;
/// what was there stays.
void save_checkpoint(const std::filesystem::path& directory, std::int64_t step, const SafeTensors& content);

/// The newest that is whole; each that is not adds a remark. Nullopt: the directory has none, or is not there.
/// ConfigError when there are checkpoints and all of them are damaged.
std::optional<Checkpoint> last_checkpoint(const std::filesystem::path& directory, std::vector<std::string>& remarks);

/// Fails now, with the error that save_checkpoint would give, if nothing can be written there: called before long work.
void check_checkpoint_directory(const std::filesystem::path& directory);

/// Whether there are any, whole or not.
bool has_checkpoints(const std::filesystem::path& directory);

}  // namespace ganymede::kernel
