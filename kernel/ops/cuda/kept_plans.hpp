#pragma once
// Compiled plans of cuDNN as texts, kept for later trainings. Compiling one takes cuDNN 9.19 between half a second and
// nine, reading it back some milliseconds.

#include <filesystem>
#include <mutex>
#include <string>
#include <utility>

namespace ganymede::kernel {

class KeptPlans {
 public:
  KeptPlans() = default;
  KeptPlans(const KeptPlans&) = delete;
  KeptPlans& operator=(const KeptPlans&) = delete;
  virtual ~KeptPlans() = default;

  /// The text kept under this key, a line that names GPU, cuDNN's version, precision, operations, shape and batch.
  /// Empty: there is none.
  virtual std::string find(const std::string& key) = 0;
  virtual void keep(const std::string& key, const std::string& text) = 0;
};

/// Plans in a folder, which is made when the first is kept: a file each, of the key, a checksum and the text. What
/// cannot be read, or was changed, counts as not kept; where a plan cannot be written, a warning on the standard error
/// stream says so once.
class FolderPlans final : public KeptPlans {
 public:
  explicit FolderPlans(std::filesystem::path folder) : folder_(std::move(folder)) {}

  std::string find(const std::string& key) override;
  void keep(const std::string& key, const std::string& text) override;

 private:
  std::filesystem::path file_of(const std::string& key) const;

  std::filesystem::path folder_;
  std::mutex mutex_;
  bool has_warned_ = false;
};

/// The plans in the folder cudnn-plans of the cache's folder (see cache_directory()).
KeptPlans& kept_plans();

}  // namespace ganymede::kernel
